"""Slices: calls that have the values of a rule's `group_by` in common."""

import hashlib
import json
from collections.abc import Mapping
from uuid import UUID

Slice = Mapping[str, str | None]
WHOLE = "all calls"


def slice_key(values: Slice) -> UUID:
    """Give the key of a slice: the same values give the same key, in any order."""
    text = json.dumps(dict(values), sort_keys=True, ensure_ascii=False)
    return UUID(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest())


def slice_name(values: Slice) -> str:
    """Name a slice as a person does: `acme/m-1, next_step, prod`."""
    provider, model = values.get("provider"), values.get("model")
    parts = ["/".join(part for part in (provider, model) if part)]
    parts += [value or "" for name, value in values.items() if name not in MODEL]
    return ", ".join(part for part in parts if part) or WHOLE


MODEL = ("provider", "model")
