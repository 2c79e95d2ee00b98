"""The registry: only what is registered can be called, only with arguments that fit."""

import threading
import time
from typing import Any

import pytest
from pydantic import BaseModel

from failsoft.plans.execution import (
    ToolArgumentsError,
    ToolNotFoundError,
    ToolRefusedError,
    ToolTimeoutError,
)
from plans.tools import registry
from plans.tools.registry import call_tool, nearest_tool, offered_tools, tool


class CountArgs(BaseModel):
    number: int
    secret: str = ""


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_tools", registry.registered_tools())


def test_a_decorated_function_is_a_tool_and_stays_a_function() -> None:
    @tool("double", CountArgs, description="Double a number.")
    def double(args: CountArgs) -> int:
        return 2 * args.number

    assert call_tool("double", {"number": 4}) == 8
    assert double(CountArgs(number=1)) == 2


def test_two_tools_cannot_share_a_name() -> None:
    with pytest.raises(registry.DuplicateToolError):
        tool("echo", CountArgs, description="")(lambda args: args)


def test_an_unknown_tool_is_not_found() -> None:
    with pytest.raises(ToolNotFoundError):
        call_tool("__class__", {})


def test_arguments_are_checked_before_the_call_and_not_repeated() -> None:
    tool("double", CountArgs, description="")(lambda args: 1 / 0)
    with pytest.raises(ToolArgumentsError, match='"number"') as refused:
        call_tool("double", {"number": "many", "secret": ["correct horse"]})
    assert "many" not in str(refused.value)
    assert "horse" not in str(refused.value)


def test_a_tool_that_takes_too_long_is_given_up() -> None:
    def hang(args: CountArgs) -> None:
        time.sleep(5)

    tool("hang", CountArgs, description="", timeout_seconds=0.05)(hang)
    started = time.monotonic()
    with pytest.raises(ToolTimeoutError, match=r"0\.05 s"):
        call_tool("hang", {"number": 1})
    assert time.monotonic() - started < 2


def test_a_call_that_must_not_be_repeated_has_an_unknown_outcome_when_its_time_is_over() -> None:
    over = threading.Event()
    order = tool(
        "order",
        CountArgs,
        description="",
        side_effects=True,
        idempotent=False,
        timeout_seconds=0.05,
    )
    order(lambda args: over.wait(5))
    with pytest.raises(ToolRefusedError, match=r"0\.05 s, and its effect is unknown") as refused:
        call_tool("order", {"number": 1})
    over.set()
    assert refused.value.reason == "unknown_outcome"


def test_what_a_tool_with_a_limit_returns_or_raises_arrives() -> None:
    def divide(args: CountArgs) -> float:
        return 6 / args.number

    tool("divide", CountArgs, description="", timeout_seconds=5)(divide)
    assert call_tool("divide", {"number": 3}) == 2
    with pytest.raises(ZeroDivisionError):
        call_tool("divide", {"number": 0})


def test_fail_is_registered_but_never_offered() -> None:
    offered = [offer.name for offer in offered_tools()]
    assert offered == ["echo", "http_get", "json_select", "sleep", "template"]
    assert "fail" in registry.registered_tools()


def test_every_tool_publishes_the_schema_of_its_arguments() -> None:
    for registered in registry.registered_tools().values():
        assert registered.schema()["type"] == "object"
        assert registered.description


@pytest.mark.parametrize(
    ("name", "nearest"), [("ecko", "echo"), ("http-get", "http_get"), ("zzz", None)]
)
def test_the_nearest_name_is_found(name: str, nearest: Any) -> None:
    assert nearest_tool(name) == nearest
