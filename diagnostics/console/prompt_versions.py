"""Prompt versions against each other: when each was in use, how it went, what is new."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from diagnostics.queries.call_counts import CallCounts, add_counts
from diagnostics.queries.matrix import Excess, ModelKey, excess_of_rate

ROLLED_OUT = 0.25
VersionKey = tuple[str | None, str | None]
"""Source and prompt version."""


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
        figures = self.total if model is None else self.models.get(model)
        if figures is None:
            return None
        past = CallCounts()
        if self.before is not None:
            before = self.before
            past = before.total if model is None else before.models.get(model, past)
        return excess_of_rate("failed", figures, past)


def versions_of(
    used: Mapping[VersionKey, Mapping[ModelKey, CallCounts]],
    placed: Mapping[VersionKey, Mapping[int, int]],
) -> dict[str | None, list[PromptVersion]]:
    """Return the versions of each source, oldest first, each with the one before it.

    `used` has the calls of every model, `placed` their number in every slot. A version without
    a call in any slot is left out.
    """
    by_name: dict[str | None, list[PromptVersion]] = defaultdict(list)
    for (source, name), by_slot in placed.items():
        models = used.get((source, name), {})
        by_name[source].append(PromptVersion(source, name, by_slot, models))
    for versions in by_name.values():
        _set_begins(versions)
        versions.sort(key=lambda version: (version.began, version.last_slot, version.name or ""))
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
