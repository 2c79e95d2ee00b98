"""What the strict profile adds: tool objects, earlier steps, known tools (X-7)."""

import difflib
from collections.abc import Collection
from typing import Any

from plans.core.violations import Violations, quote


def check_strictly(
    steps: list[Any],
    index_of: dict[str, int],
    known_tools: Collection[str] | None,
    found: Violations,
) -> None:
    for index, step in enumerate(steps):
        if found.full or not isinstance(step, dict):
            continue
        _check_earlier(step, index, index_of, found)
        tool = step.get("tool")
        if isinstance(tool, str):
            found.add(
                f"/steps/{index}/tool",
                "tool_not_object",
                "expected an object with name and args",
            )
        name = tool.get("name") if isinstance(tool, dict) else tool
        if known_tools is not None and isinstance(name, str) and name not in known_tools:
            found.add(
                f"/steps/{index}/tool",
                "tool_unknown",
                _explain_unknown(name, known_tools),
            )


def _check_earlier(
    step: dict[str, Any], index: int, index_of: dict[str, int], found: Violations
) -> None:
    dependencies = step.get("dependencies")
    for place, dependency in enumerate(dependencies if isinstance(dependencies, list) else []):
        if isinstance(dependency, str) and index_of.get(dependency, -1) > index:
            found.add(
                f"/steps/{index}/dependencies/{place}",
                "dependency_not_earlier",
                f"expected an earlier step, but {quote(dependency)} comes later",
            )


def _explain_unknown(name: str, known_tools: Collection[str]) -> str:
    nearest = difflib.get_close_matches(name[:100], known_tools, n=1)
    hint = f"; the nearest is {quote(nearest[0])}" if nearest else ""
    return f"expected a registered tool, got {quote(name)}{hint}"
