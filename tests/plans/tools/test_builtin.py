"""The built-in tools: useful, bounded, and deaf to code."""

import tracemalloc
from typing import Any

import pytest

from failsoft.plans.execution import ToolArgumentsError
from plans.tools.builtin import FailedOnPurposeError
from plans.tools.registry import call_tool


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"text": "hi"},
        {"a": {"b": [1, None]}},
        {"self": 1, "args": 2, "__class__": 3, "model_config": 4, "model_extra": 5},
    ],
)
def test_echo_returns_its_arguments(args: dict[str, Any]) -> None:
    assert call_tool("echo", args) == args


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("Hello $name", {"name": "Ada"}, "Hello Ada"),
        ("${a}${b}", {"a": 1, "b": [True]}, "1[true]"),
        ("$$name costs $5", {"name": "x"}, "$name costs $5"),  # not names of values
        ("$missing stays", {}, "$missing stays"),
        ("$a", {"a": "$b", "b": "no"}, "$b"),  # values are not looked at again
        ("{{ 7*7 }} {a} %(a)s ${a.b}", {"a": 1}, "{{ 7*7 }} {a} %(a)s ${a.b}"),
        ("$__class__ ${__globals__}", {}, "$__class__ ${__globals__}"),
    ],
)
def test_s29_template_substitutes_names_and_evaluates_nothing(
    template: str, values: dict[str, Any], text: str
) -> None:
    assert call_tool("template", {"template": template, "values": values}) == {"text": text}


def test_a_template_that_explodes_is_refused() -> None:
    args: dict[str, Any] = {"template": "$a" * 1000, "values": {"a": "x" * 1000}}
    with pytest.raises(ValueError, match="characters"):
        call_tool("template", args)


@pytest.mark.parametrize("value", ["x" * 2**20, ["x" * 2**20]])
def test_a_template_is_refused_before_its_text_fills_the_memory(value: Any) -> None:
    args: dict[str, Any] = {"template": "$a" * 64, "values": {"a": value}}
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="characters"):
            call_tool("template", args)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * 2**20


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("", {"a": [1, {"b/c": 2}], "": 0}), ("/a/0", 1), ("/a/1/b~1c", 2), ("/", 0)],
)
def test_json_select_follows_a_pointer(pointer: str, value: object) -> None:
    document: Any = {"a": [1, {"b/c": 2}], "": 0}
    output = call_tool("json_select", {"value": document, "pointer": pointer})
    assert output == {"value": value}


@pytest.mark.parametrize("pointer", ["a", "/b", "/a/2", "/a/-1", "/a/01", "/a/0/x"])
def test_json_select_says_when_there_is_nothing(pointer: str) -> None:
    with pytest.raises(ValueError, match=r"nothing found at|start with"):
        call_tool("json_select", {"value": {"a": [1, 2]}, "pointer": pointer})


def test_sleep_is_bounded() -> None:
    assert call_tool("sleep", {"seconds": 0}) == {"slept_seconds": 0}
    for seconds in (-1, 31, "soon"):
        with pytest.raises(ToolArgumentsError):
            call_tool("sleep", {"seconds": seconds})


@pytest.mark.parametrize("args", [{}, {"message": "boom"}, {"other": 1}])
def test_fail_always_fails(args: dict[str, Any]) -> None:
    with pytest.raises(FailedOnPurposeError, match=args.get("message", "on purpose")):
        call_tool("fail", args)
