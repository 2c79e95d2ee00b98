"""Prompt versions against each other: when each was in use, how it went, what is new."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import pairwise

from diagnostics.queries.call_counts import CallCounts, add_counts
from diagnostics.queries.matrix import Excess, excess_of_rate

ROLLED_OUT = 0.25
ModelKey = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class VersionUse:
    """Calls of one version by one model."""

    source: str | None
    version: str | None
    model: ModelKey
    counts: CallCounts


@dataclass(frozen=True, slots=True)
class VersionSlot:
    """How many calls one version had in one slot of time."""

    source: str | None
    version: str | None
    slot: int
    calls: int


@dataclass
class PromptVersion:
    """A prompt version of a source in a window."""

    source: str | None
    name: str | None
    slots: Mapping[int, int]
    """Calls by slot."""
    models: Mapping[ModelKey, CallCounts]
    began: int = 0
    """The first slot in which it had a quarter of its source's calls."""
    before: "PromptVersion | None" = None

    @property
    def first_slot(self) -> int:
        return min(self.slots)

    @property
    def last_slot(self) -> int:
        return max(self.slots)

    @cached_property
    def total(self) -> CallCounts:
        return add_counts(list(self.models.values()))

    def against_before(self, model: ModelKey | None = None) -> Excess | None:
        """Compare with the version before, of one model or of all; None without one."""
        mine = self.total if model is None else self.models.get(model)
        if mine is None:
            return None
        past = CallCounts()
        if self.before is not None:
            before = self.before
            past = before.total if model is None else before.models.get(model, past)
        return excess_of_rate("failed", mine, past)


def versions_of(
    used: Iterable[VersionUse], placed: Iterable[VersionSlot]
) -> dict[str | None, list[PromptVersion]]:
    """Return the versions of each source, oldest first, each with the one before it.

    A version without a call in any slot is left out.
    """
    slots: dict[tuple[str | None, str | None], dict[int, int]]
    slots = defaultdict(lambda: defaultdict(int))
    models: dict[tuple[str | None, str | None], dict[ModelKey, CallCounts]]
    models = defaultdict(dict)
    for place in placed:
        slots[place.source, place.version][place.slot] += place.calls
    for one in used:
        models[one.source, one.version][one.model] = one.counts
    by_name: dict[str | None, list[PromptVersion]] = defaultdict(list)
    for (source, name), by_slot in slots.items():
        mine = models.get((source, name), {})
        by_name[source].append(PromptVersion(source, name, dict(by_slot), mine))
    for versions in by_name.values():
        _set_begins(versions)
        versions.sort(key=lambda one: (one.began, one.last_slot, one.name or ""))
        for before, version in pairwise(versions):
            version.before = before
    return dict(sorted(by_name.items(), key=lambda item: item[0] or ""))


def _set_begins(versions: list[PromptVersion]) -> None:
    """A trial with a few calls is no roll-out: it would be in the wrong order."""
    totals: dict[int, int] = defaultdict(int)
    for version in versions:
        for slot, calls in version.slots.items():
            totals[slot] += calls
    for version in versions:
        often = [
            slot for slot, calls in version.slots.items() if calls >= ROLLED_OUT * totals[slot]
        ]
        version.began = min(often, default=version.first_slot)


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """When a failure group was first seen with a version, in the window."""

    group: int
    source: str | None
    version: str | None
    first: datetime


def introduced_by(
    seen: Iterable[FirstFailure], first_seen: Mapping[int, datetime], hour: timedelta
) -> dict[tuple[str | None, str | None], list[int]]:
    """Put each group down to the version it was first seen with, if that lies in the window."""
    earliest: dict[int, FirstFailure] = {}
    for one in seen:
        known = earliest.get(one.group)
        if known is None or one.first < known.first:
            earliest[one.group] = one
    found: dict[tuple[str | None, str | None], list[int]] = defaultdict(list)
    for group, one in earliest.items():
        if first_seen[group] >= one.first and first_seen[group] < one.first + hour:
            found[one.source, one.version].append(group)
    return found
