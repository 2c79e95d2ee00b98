"""Tool messages for a conversation that goes on, one per call (S4-27, S4-28).

Off unless a conversation has further turns: nothing in the product sends them yet (S4-29).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.core.actions.results import Action, ParseFailure, ParseResult

MAX_TOLD = 5


@dataclass(frozen=True, slots=True)
class ExecutionFailure:
    """An action that was decoded and could not be applied; the message is ours."""

    action: Action
    code: str
    message: str


def tool_messages(
    result: ParseResult, failures: Sequence[ExecutionFailure]
) -> list[dict[str, str]]:
    """Answer every call that has an id: accepted, failed, or failed in part and why."""
    told = {item.call: (item.tool_call_id, _tell_unparsed(item)) for item in result.failures}
    for action in result.actions:
        if action.call not in told:
            said = _tell(action, result, failures)
            told[action.call] = action.tool_call_id, said
    return [
        {"role": "tool", "tool_call_id": identity, "content": content}
        for _, (identity, content) in sorted(told.items())
        if identity is not None
    ]


def _tell_unparsed(failure: ParseFailure) -> str:
    place = f"{failure.path}: " if failure.path else ""
    return f"{failure.tool_name or 'tool call'} failed: {place}{failure.message}"


def _tell(action: Action, result: ParseResult, failures: Sequence[ExecutionFailure]) -> str:
    mine = [item for item in failures if item.action.call == action.call]
    if not mine:
        return f"{action.tool_name} accepted."
    received = sum(item.call == action.call for item in result.actions)
    verdict = "failed" if len(mine) == received else "partially failed"
    reasons = "; ".join(item.message for item in mine[:MAX_TOLD])
    more = f"; and {len(mine) - MAX_TOLD} more" if len(mine) > MAX_TOLD else ""
    return f"{action.tool_name} {verdict}: {reasons}{more}"
