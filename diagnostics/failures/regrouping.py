"""The effect of a regrouping: which groups it would merge or split."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from diagnostics.store.fingerprints import FailureKind


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
