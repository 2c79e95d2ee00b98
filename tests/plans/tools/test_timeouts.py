"""Tools that ignore their time: they cannot be stopped, but they do not pile up."""

import threading

import pytest

from failsoft.plans.execution import ToolRefusedError, ToolTimeoutError
from plans.tools import definition
from plans.tools.definition import call_within


def test_calls_that_go_on_after_their_time_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definition, "MOST_LEFT_BEHIND", 3)
    monkeypatch.setattr(definition, "_left_behind", definition._LeftBehind())
    over = threading.Event()
    for _ in range(3):
        with pytest.raises(ToolTimeoutError):
            call_within(0.01, lambda _argument: over.wait(), None)
    with pytest.raises(ToolRefusedError, match="still running") as refused:
        call_within(1, str, "fine")
    assert refused.value.reason == "tool_busy"
    over.set()
    for thread in definition._left_behind.threads:
        thread.join(timeout=10)
    assert call_within(1, str, "fine") == "fine"
