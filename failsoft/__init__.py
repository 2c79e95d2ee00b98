"""Failsoft for agents: recover or refuse answers, retry within bounds, mask secrets.

>>> from failsoft import recover
>>> recover("Sure! {'a': 1,}").value
{'a': 1}

Names are loaded from their rooms at first use: `parsing`, `redaction`, `plans`, `completion`,
`actions`, `retry` and `events`. Nothing here needs a server, a database or a framework.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from failsoft.actions import decode_tool_calls
    from failsoft.completion import resolve_completion_decision
    from failsoft.events import PostedEvent
    from failsoft.parsing import Recovered, RefusedAnswer, recover
    from failsoft.plans import execute, validate_payload, validate_results
    from failsoft.redaction import Redactor, load_rule_set
    from failsoft.retry import attempts

VERSION = "0.1.0"

__all__ = [
    "PostedEvent",
    "Recovered",
    "Redactor",
    "RefusedAnswer",
    "attempts",
    "decode_tool_calls",
    "execute",
    "load_rule_set",
    "recover",
    "resolve_completion_decision",
    "validate_payload",
    "validate_results",
]

_ROOMS = {
    "PostedEvent": "events",
    "Recovered": "parsing",
    "Redactor": "redaction",
    "RefusedAnswer": "parsing",
    "attempts": "retry",
    "decode_tool_calls": "actions",
    "execute": "plans",
    "load_rule_set": "redaction",
    "recover": "parsing",
    "resolve_completion_decision": "completion",
    "validate_payload": "plans",
    "validate_results": "plans",
}


def __getattr__(name: str) -> object:
    """Return a public name from its room; the room is imported at first use."""
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
