"""Tools that ignore their time: they cannot be stopped, but they do not pile up."""

import threading

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from pydantic import BaseModel

from failsoft.plans.execution import CallContext, ToolRefusedError, ToolTimeoutError
from plans.tools import definition
from plans.tools.definition import ModelArguments, Tool, call_within


class NoArguments(BaseModel):
    """Nothing."""


def test_calls_that_go_on_after_their_time_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definition, "MOST_LEFT_BEHIND", 3)
    over = threading.Event()
    for _ in range(3):
        with pytest.raises(ToolTimeoutError):
            call_within(0.01, lambda _argument: over.wait(), None)
    with pytest.raises(ToolRefusedError, match="still running") as refused:
        call_within(1, str, "fine")
    assert refused.value.reason == "tool_busy"
    over.set()
    for thread in threading.enumerate():
        if thread.name == definition._LEFT_BEHIND:
            thread.join(timeout=10)
    assert call_within(1, str, "fine") == "fine"


@pytest.mark.parametrize(
    ("side_effects", "error"), [(False, ToolTimeoutError), (True, ToolRefusedError)]
)
def test_a_call_that_outlasts_its_task_is_a_timeout(
    side_effects: bool, error: type[Exception]
) -> None:
    def run(_arguments: object, _context: CallContext) -> object:
        raise SoftTimeLimitExceeded

    arguments = ModelArguments(NoArguments)
    slow = Tool("slow", "", arguments, run, side_effects=side_effects, idempotent=False)

    with pytest.raises(error, match="time limit of its task"):
        slow.call({}, CallContext())
