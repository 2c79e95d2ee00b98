"""A plan that stands in when every attempt failed and the goal allows it (X-4): never a success."""

from typing import Any

STUB_TITLE = "Stand-in step: planning did not succeed"


def stub_plan() -> dict[str, Any]:
    """One harmless step, valid by the contract, without any text of the goal or the model."""
    return {
        "steps": [
            {
                "step_id": "step_1",
                "title": STUB_TITLE,
                "dependencies": [],
                "tool": {"name": "echo", "args": {"text": STUB_TITLE}},
            }
        ]
    }


def stub_proposal() -> dict[str, Any]:
    """The same for a planner that plans a step at a time: the end, with nothing done."""
    return {"kind": "finish", "answer": STUB_TITLE}
