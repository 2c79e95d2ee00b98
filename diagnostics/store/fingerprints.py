"""The fingerprint of a failure, which defines failure groups.

Version 1 uses node, schema, error type, JSON pointer (indexes as `*`) and the class of fault or
the tool. It ignores provider, model, prompt version, message, line and column: one kind of
failure stays one group for all models.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any
from uuid import UUID

from failsoft.events import NEAREST_TOOL

VERSION = 1
LONGEST_POINTER = 400
LONGEST_DETAIL = 120
# Keys that are numbers rather than names.
NUMBERED = re.compile(r"[0-9]+")
RANDOM_KEY = re.compile(r"(?=\D*[0-9])[0-9a-f]{8,}(?:-[0-9a-f]{4,})*", re.IGNORECASE)
DIGITS = re.compile(r"[0-9]+")
# For others a pointer only says how far the parser came, which is no difference in kind.
POINTED = frozenset({"schema_invalid", "duplicate_key", "other"})
# Other ends of a run follow from failed attempts, which have groups of their own.
ENDS = frozenset({"circuit_open", "budget_exhausted", "timeout"})
# The class of fault of each validator code.
FAULTS: Mapping[str, str] = {
    "missing": "missing",
    "required": "missing",
    "literal_error": "enum",
    "enum": "enum",
    "const": "enum",
    "extra_forbidden": "extra",
    "additionalproperties": "extra",
    "key_unknown": "extra",
    "argument_missing": "missing",
    "argument_unknown": "extra",
    "type": "type",
}
TYPE_CODE = re.compile(r"[a-z_]+_(?:type|parsing)")


@dataclass(frozen=True)
class FailureKind:
    """What failures of one group have in common."""

    node: str
    schema: str | None
    kind: str
    error_type: str
    pointer: str = ""
    detail: str = ""

    @property
    def fingerprint(self) -> UUID:
        """The fingerprint: the same for all failures of this kind, on any machine."""
        return _fingerprint(self)


# Cached: there are few kinds, and each failure has one.
@lru_cache(maxsize=4096)
def _fingerprint(kind: FailureKind) -> UUID:
    parts = [VERSION, kind.node, kind.schema, kind.kind, kind.error_type, kind.pointer, kind.detail]
    text = json.dumps(parts, ensure_ascii=True, separators=(",", ":"))
    return UUID(bytes=sha256(text.encode()).digest()[:16])


def kind_of(row: Mapping[str, Any]) -> FailureKind | None:
    """Return the kind of a stored event; None if it is no failure.

    `row` has node, schema, kind, parse_error_type, call_error_type, reason and payload
    (validation_errors, tool, attributes), redacted.
    """
    kind, node, schema = row["kind"], row["node"], row.get("schema")
    payload = row.get("payload") or {}
    if kind == "parse_invalid":
        error_type = row["parse_error_type"]
        errors = payload.get("validation_errors", ()) if error_type in POINTED else ()
        return FailureKind(node, schema, kind, error_type, *fault_of(errors))
    if kind == "provider_error":
        error_name = row.get("call_error_type") or kind
        return FailureKind(node, schema, kind, error_name)
    if kind == "unknown_tool":
        nearest = payload.get("attributes", {}).get(NEAREST_TOOL)
        return FailureKind(node, schema, kind, kind, detail=tool_of(payload.get("tool"), nearest))
    if kind == "degraded" and row["reason"] in ENDS:
        return FailureKind(node, schema, kind, row["reason"])
    return None


def normalise_pointer(pointer: str) -> str:
    """Return a JSON pointer with numbers as `*`: /steps/2/id -> /steps/*/id.

    A path with dots or brackets (steps.2.id, steps[2].id) is read likewise.
    """
    if pointer and not pointer.startswith("/"):
        pointer = "/" + pointer.lstrip("$.").replace("[", ".").replace("]", "")
        pointer = pointer.replace(".", "/")
    parts = (
        "*" if NUMBERED.fullmatch(part) or RANDOM_KEY.fullmatch(part) else DIGITS.sub("*", part)
        for part in pointer.split("/")
    )
    return "/".join(parts).rstrip("/")[:LONGEST_POINTER]


def fault_of(errors: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return the pointer and class of a fault: of several, the one whose pointer sorts first.

    Validators differ in the order in which they report faults.
    """
    faults = sorted(
        (normalise_pointer(item.get("path") or ""), _fault_class(item.get("code")))
        for item in errors
    )
    pointed = [item for item in faults if item[0]]
    return (pointed or faults or [("", "")])[0]


def _fault_class(code: str | None) -> str:
    known = (code or "").lower()
    if TYPE_CODE.fullmatch(known):
        return "type"
    return FAULTS.get(known, DIGITS.sub("*", known)[:LONGEST_DETAIL])


def tool_of(tool: str | None, nearest: object) -> str:
    """Return the registered tool that was probably meant, else the name without numbers."""
    name = nearest if isinstance(nearest, str) and nearest else tool
    return DIGITS.sub("*", (name or "").strip().lower())[:LONGEST_DETAIL]


def group_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fingerprint of a failure and its parts; empty if the event is no failure."""
    if not row.get("payload"):
        return {}
    kind = kind_of(row)
    if kind is None:
        return {}
    return {
        "fingerprint": str(kind.fingerprint),
        "fingerprint_version": VERSION,
        "error_type": kind.error_type,
        "pointer": kind.pointer,
        "detail": kind.detail,
    }


@dataclass(frozen=True, slots=True)
class Regrouping:
    """A coarser way to group: what it no longer distinguishes.

    `pointer_depth` is the number of pointer parts to keep; `wild_keys` are keys that count as
    `*`, like an index.
    """

    ignores_schema: bool = False
    ignores_detail: bool = False
    pointer_depth: int | None = None
    wild_keys: Sequence[str] = ()

    def apply(self, kind: FailureKind) -> FailureKind:
        parts = kind.pointer.split("/")
        if self.pointer_depth is not None:
            parts = parts[: self.pointer_depth + 1]
        return replace(
            kind,
            schema=None if self.ignores_schema else kind.schema,
            detail="" if self.ignores_detail else kind.detail,
            pointer="/".join("*" if part in self.wild_keys else part for part in parts),
        )


@dataclass(frozen=True, slots=True)
class Preview:
    """The effect of a regrouping: groups by their current fingerprints, with counts."""

    merged: Mapping[FailureKind, Mapping[UUID, int]]
    """New kinds that merge several current groups."""
    split: Mapping[UUID, Mapping[FailureKind, int]]
    """Current groups that would split."""
    kept: int
    """Groups that would not change."""


def preview(failures: Iterable[tuple[UUID, FailureKind]]) -> Preview:
    """Compare the current fingerprint of each failure with its new kind."""
    by_kind: dict[FailureKind, Counter[UUID]] = defaultdict(Counter)
    by_group: dict[UUID, Counter[FailureKind]] = defaultdict(Counter)
    for fingerprint, kind in failures:
        by_kind[kind][fingerprint] += 1
        by_group[fingerprint][kind] += 1
    merged = {kind: counts for kind, counts in by_kind.items() if len(counts) > 1}
    split = {group: counts for group, counts in by_group.items() if len(counts) > 1}
    touched = {group for counts in merged.values() for group in counts} | split.keys()
    return Preview(merged, split, len(by_group) - len(touched))
