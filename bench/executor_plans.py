"""Plans of every size and shape."""

from typing import Any

LAYER = 100


def make_plan(steps: int, shape: str, tool: str = "noop") -> dict[str, Any]:
    """Return a `chain`, a `wide` plan, or one in `layers` of 100 steps."""
    return {
        "steps": [
            {
                "step_id": f"step_{index + 1}",
                "dependencies": [f"step_{other + 1}" for other in _waits(index, shape)],
                "tool": {"name": tool, "args": {}},
            }
            for index in range(steps)
        ]
    }


def _waits(index: int, shape: str) -> list[int]:
    if shape == "chain":
        return [index - 1] if index else []
    if shape == "wide" or index < LAYER:
        return []
    first = (index // LAYER - 1) * LAYER
    return [first + index % LAYER, first + (index + 1) % LAYER]
