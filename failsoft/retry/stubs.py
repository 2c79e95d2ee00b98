"""Stub plans, used when every attempt failed and the goal allows them; never a success.

Goals that match a pattern get the plan of its template, all others a single labelled step.
No step accesses anything outside of the run: no URL, and no wait of more than a moment.
"""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from failsoft.parsing.tracing import read_valid
from failsoft.plans.ordering import referenced_step

STUB_TITLE = "Stub step: planning did not succeed"
# Patterns are matched against the beginning of a goal: each fits in one sentence.
MAX_GOAL = 2_000
MAX_TEXT = 200
MAX_PAUSE_SECONDS = 2
Plan = dict[str, Any]
Call = tuple[str, dict[str, Any]]


def _greet(match: re.Match[str]) -> list[Call]:
    values = {"name": match["name"].strip(" .!\"'")}
    return [("template", {"template": "Hello $name.", "values": values})]


def _take(match: re.Match[str]) -> list[Call] | None:
    is_valid, value = read_valid(match["value"])
    if not (is_valid and isinstance(value, dict)) or match["field"] not in value:
        return None
    return [("json_select", {"value": value, "pointer": f"/{match['field']}"})]


def _wait(match: re.Match[str]) -> list[Call]:
    # A stub must not occupy a worker for as long as a real plan may.
    seconds = min(int(match["seconds"]), MAX_PAUSE_SECONDS)
    return [("sleep", {"seconds": seconds})]


def _say_each(match: re.Match[str]) -> list[Call]:
    parts = re.split(r",\s*(?:and\s+)?then\s+", match["text"].strip(" ."))
    return [("echo", {"text": part.strip()[:MAX_TEXT]}) for part in parts[:10]]


def _goal_pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.DOTALL)


# Patterns of goals, in order of precedence, and the calls for a match.
TEMPLATES: Sequence[tuple[re.Pattern[str], Callable[[re.Match[str]], list[Call] | None]]] = (
    (
        _goal_pattern(
            r"from\s+(?P<value>\{.{0,1500}\})\s+take\s+(?:the\s+)?(?:field\s+)?(?P<field>\w{1,80})"
        ),
        _take,
    ),
    (_goal_pattern(r"greet\s+(?P<name>[\w][\w' -]{0,60}?)(?:\s+by\s+name)?[.!]?\s*$"), _greet),
    (_goal_pattern(r"(?:wait|sleep)\s+(?:for\s+)?(?P<seconds>\d{1,4})\s+seconds?\b"), _wait),
    (
        _goal_pattern(r"(?:echo|say|repeat)\s+(?:the\s+(?:word|text|sentence)\s+)?(?P<text>\S.*)$"),
        _say_each,
    ),
)


def stub_plan(goal: str = "", tools: Collection[str] | None = None) -> Plan:
    """Return the stub plan for a goal, valid under the contract.

    `tools` are those that a template may call; None allows all.
    """
    text = goal.strip()[:MAX_GOAL]
    for pattern, build in TEMPLATES:
        match = pattern.match(text)
        calls = build(match) if match else None
        if calls and (tools is None or {name for name, _ in calls} <= set(tools)):
            return _make_plan(calls)
    return _make_plan([("echo", {"text": STUB_TITLE})])


def stub_proposal() -> dict[str, Any]:
    """Return the stub of a planner that plans one step at a time: finish, with nothing done."""
    return {"kind": "finish", "answer": STUB_TITLE}


def _make_plan(calls: list[Call]) -> Plan:
    return {
        "steps": [
            {
                "step_id": f"step_{number}",
                "title": STUB_TITLE,
                "dependencies": [f"step_{number - 1}"] if number > 1 else [],
                "tool": {"name": name, "args": _escape(args)},
            }
            for number, (name, args) in enumerate(calls, 1)
        ]
    }


def _escape(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a value whose texts are escaped, so that none refers to a step."""
    if isinstance(value, str):
        return f"${value}" if referenced_step(value) else value
    if isinstance(value, dict):
        return {key: _escape(item) for key, item in value.items()}
    return [_escape(item) for item in value] if isinstance(value, list) else value
