"""The JSON Schema of a plan: what the node registers, and what tools take."""

from typing import Any

PLAN: dict[str, Any] = {
    "title": "Plan",
    "type": "object",
    "required": ["title", "steps"],
    "properties": {
        "title": {"type": "string"},
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "properties": {"tool": {"type": "string"}},
            },
        },
    },
}
