"""What another way of grouping would change: which groups it would merge or split."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from diagnostics.store.fingerprints import FailureKind


@dataclass(frozen=True, slots=True)
class Regrouping:
    """A coarser way to group: what it no longer tells apart.

    `pointer_depth` keeps so many parts of a pointer; `wild_keys` are keys that count
    as `*`, like an index.
    """

    ignores_schema: bool = False
    ignores_detail: bool = False
    pointer_depth: int | None = None
    wild_keys: Sequence[str] = ()

    def apply(self, kind: FailureKind) -> FailureKind:
        """Return the kind that a failure would be of."""
        return replace(
            kind,
            schema=None if self.ignores_schema else kind.schema,
            detail="" if self.ignores_detail else kind.detail,
            pointer=self._pointer(kind.pointer),
        )

    def _pointer(self, pointer: str) -> str:
        parts = pointer.split("/")
        if self.pointer_depth is not None:
            parts = parts[: self.pointer_depth + 1]
        return "/".join("*" if part in self.wild_keys else part for part in parts)


@dataclass(frozen=True, slots=True)
class Preview:
    """What would change: groups by their fingerprints of today, with failures seen."""

    merged: Mapping[FailureKind, Mapping[UUID, int]]
    """New kinds that take in several groups of today."""
    split: Mapping[UUID, Mapping[FailureKind, int]]
    """Groups of today that would fall apart."""
    kept: int
    """Groups that would stay as they are."""


def preview(failures: Iterable[tuple[UUID, FailureKind]]) -> Preview:
    """Compare today's fingerprint of each failure with the kind it would be of."""
    by_kind: dict[FailureKind, Counter[UUID]] = defaultdict(Counter)
    by_group: dict[UUID, Counter[FailureKind]] = defaultdict(Counter)
    for fingerprint, kind in failures:
        by_kind[kind][fingerprint] += 1
        by_group[fingerprint][kind] += 1
    merged = {kind: found for kind, found in by_kind.items() if len(found) > 1}
    split = {group: found for group, found in by_group.items() if len(found) > 1}
    touched = {group for found in merged.values() for group in found} | split.keys()
    return Preview(merged, split, len(by_group) - len(touched))
