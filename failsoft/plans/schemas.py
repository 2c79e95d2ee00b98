"""The contract as JSON Schemas: the rules about shape, in `*.schema.json` beside this file.

The schemas accept every document that the validators accept. Rules beyond shape - dependencies,
sequences, sums of counts - are checked by the validators only.
"""

import json
from pathlib import Path
from typing import Any

NAMES = ("payload", "results")


def contract_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of `payload` or `results`."""
    text = Path(__file__).with_name(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
