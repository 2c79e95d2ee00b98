"""What a model is asked that checks completion: with the check's own id, by value (S3-31).

The form of the answer is told inside a sentence: a model that only repeats it has not
decided anything.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agents.core.context import describe_results
from agents.core.fencing import fenced
from agents.core.prompts import Prompt

SCHEMA_NAME = "CompletionDecision"
MAX_GOAL_CHARACTERS = 8_000
MAX_RESULTS_CHARACTERS = 12_000
SYSTEM = "You check whether a task is complete. You answer with one JSON object, and nothing else."


def check_prompt(
    goal: str,
    iteration: int,
    results: Iterable[Mapping[str, Any]],
    instructions: str | None,
    check_id: str,
) -> Prompt:
    """The prompt of one check."""
    lines = "\n".join(f"- {line}" for line in describe_results(iteration, results))
    blocks = [
        f"Task:\n{fenced(goal, MAX_GOAL_CHARACTERS)}",
        f"What was done:\n{lines[:MAX_RESULTS_CHARACTERS]}" if lines else "",
        f"What to look at:\n{instructions}" if instructions else "",
        "Answer with one JSON object with these keys: "
        '"decision", which is either "complete" or "incomplete"; '
        f'"check_id", which is exactly {json.dumps(check_id)}; '
        '"reasons", a list of short texts; '
        '"fingerprints", a list of short fixed names, one for each thing that is missing. '
        "Say complete only when nothing is missing.",
    ]
    return Prompt(SYSTEM, "\n\n".join(block for block in blocks if block))


def decision_schema(check_id: str) -> dict[str, Any]:
    """The JSON Schema of a decision, for providers that can be held to one."""
    texts = {"type": "array", "items": {"type": "string"}, "maxItems": 10}
    return {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "enum": ["complete", "incomplete"]},
            "check_id": {"type": "string", "enum": [check_id]},
            "reasons": texts,
            "fingerprints": texts,
        },
        "required": ["decision", "check_id", "reasons", "fingerprints"],
        "additionalProperties": False,
    }
