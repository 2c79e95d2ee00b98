"""Failsoft for agents: recover or refuse answers, retry within bounds, mask secrets.

>>> from failsoft import recover
>>> recover("Sure! {'a': 1,}").value
{'a': 1}

Names are imported from their packages at first use: `parsing`, `redaction`, `plans`, `completion`,
`actions`, `retry`, `events` and `telemetry`. Nothing here needs a server, a database or a
framework.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from failsoft.actions import decode_tool_calls
    from failsoft.completion import resolve_completion_decision
    from failsoft.events import CallErrorType, ParseErrorType, PostedEvent
    from failsoft.parsing import Recovered, RefusedAnswer, recover
    from failsoft.plans import execute, validate_payload, validate_results
    from failsoft.redaction import Redactor, load_rule_set
    from failsoft.retry import (
        CallFailed,
        Exhausted,
        Feedback,
        Halted,
        Interrupted,
        Invalid,
        PlannedAttempt,
        RetryConfig,
        RetryPolicy,
        Succeeded,
        Unanswered,
        Valid,
        attempts,
        parse_answer,
    )
    from failsoft.telemetry import RunScope, flush, init, run

VERSION = "0.2.0"

__all__ = [
    "CallErrorType",
    "CallFailed",
    "Exhausted",
    "Feedback",
    "Halted",
    "Interrupted",
    "Invalid",
    "ParseErrorType",
    "PlannedAttempt",
    "PostedEvent",
    "Recovered",
    "Redactor",
    "RefusedAnswer",
    "RetryConfig",
    "RetryPolicy",
    "RunScope",
    "Succeeded",
    "Unanswered",
    "Valid",
    "attempts",
    "decode_tool_calls",
    "execute",
    "flush",
    "init",
    "load_rule_set",
    "parse_answer",
    "recover",
    "resolve_completion_decision",
    "run",
    "validate_payload",
    "validate_results",
]

_ROOMS = {
    "actions": "decode_tool_calls",
    "completion": "resolve_completion_decision",
    "events": "CallErrorType ParseErrorType PostedEvent",
    "parsing": "Recovered RefusedAnswer recover",
    "plans": "execute validate_payload validate_results",
    "redaction": "Redactor load_rule_set",
    "retry": "CallFailed Exhausted Feedback Halted Interrupted Invalid PlannedAttempt RetryConfig"
    " RetryPolicy Succeeded Unanswered Valid attempts parse_answer",
    "telemetry": "RunScope flush init run",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    """Return a public name from its room; the room is imported at first use."""
    for room, names in _ROOMS.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{room}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
