"""What is kept of a refused request or item: a bounded head and why."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diagnostics.core.cleaning import JSON

HEAD_BYTES = 2_048
# So much is looked at, so that nothing secret is cut before it is recognised.
SEEN_BYTES = 65_536
MOST_ITEMS = 10
MOST_ERRORS = 10
LONGEST_TEXT = 300


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing that was refused; `seen` is raw and must be redacted before it is kept.

    `index` is the item's place in its batch, None for a whole request.
    """

    code: str
    path: str
    message: str
    seen: str
    size_bytes: int
    index: int | None = None
    event_id: str | None = None
    source: str | None = None
    errors: tuple[Mapping[str, str], ...] = ()


def refuse_body(body: bytes, code: str, message: str) -> Refusal:
    """Describe a request that was refused as a whole."""
    seen = body[:SEEN_BYTES].decode("utf-8", "replace")
    return Refusal(code, "", message, seen, len(body))


def refuse_items(items: Sequence[JSON], results: Sequence[Mapping[str, Any]]) -> list[Refusal]:
    """Describe the first refused items of a batch, by the results that were answered."""
    wrong = [result for result in results if result.get("errors")][:MOST_ITEMS]
    return [_refuse_item(items[result["index"]], result) for result in wrong]


def _refuse_item(item: JSON, result: Mapping[str, Any]) -> Refusal:
    first = result["errors"][0]
    text = json.dumps(item, ensure_ascii=False)
    source = item.get("source") if isinstance(item, dict) else None
    return Refusal(
        code=first["code"],
        path=first["path"],
        message=first["message"],
        seen=text[:SEEN_BYTES],
        size_bytes=len(text.encode("utf-8", "replace")),
        index=result["index"],
        event_id=result.get("event_id"),
        source=source if isinstance(source, str) else None,
        errors=tuple(result["errors"][:MOST_ERRORS]),
    )
