"""What is counted of calls that had everything in common, and what is usual for them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from diagnostics.core.rollups import CALL_ERRORS, FAILURE_KINDS

TRANSPORT = frozenset(CALL_ERRORS)
"""Kinds that say that no answer came at all."""
USUAL_SHARE = 0.002
"""What is expected of a kind of failure that a model never showed."""
USUAL_CALLS = 50
HIGHEST_USUAL = 0.95


LOCAL = "local"
"""The environment of one machine: beside others, it is no part of their verdict."""


class Place(NamedTuple):
    """What calls have in common; None is a value (nobody said)."""

    provider: str | None = None
    model: str | None = None
    prompt_version: str | None = None
    schema: str | None = None
    schema_version: str | None = None
    source: str | None = None
    release: str | None = None
    node: str = ""
    environment: str | None = None

    @property
    def who(self) -> "Who":
        """The planner behind the calls."""
        return Who(self.environment, self.node, self.provider, self.model)


class Who(NamedTuple):
    """A series: calls of one model at one node of one environment."""

    environment: str | None
    node: str
    provider: str | None
    model: str | None


@dataclass(frozen=True, slots=True)
class Cell:
    """Counts of one place in one window; `failures` by kind, no kind twice in a call."""

    place: Place
    attempts: int
    failures: Mapping[str, int]
    runs: int = 0
    degraded: int = 0

    @property
    def failed(self) -> int:
        """All failing calls."""
        return sum(self.failures.values())


@dataclass(slots=True)
class Usual:
    """How often each series, and each source in it, showed each kind of failure before."""

    _calls: dict[object, int] = field(default_factory=lambda: defaultdict(int))
    _failed: dict[tuple[object, str], int] = field(default_factory=lambda: defaultdict(int))

    @classmethod
    def of(cls, before: Iterable[Cell]) -> "Usual":
        """Learn from the cells of a healthy stretch."""
        usual = cls()
        for cell in before:
            for level in _levels(cell.place):
                usual._calls[level] += cell.attempts
                for kind, failed in cell.failures.items():
                    usual._failed[level, kind] += failed
        return usual

    def share(self, place: Place, kind: str) -> float:
        """Give the expected share of a kind: each level is drawn towards the one above."""
        return next(share for _, share in self.shares(place, (kind,)))

    def shares(self, place: Place, kinds: Iterable[str]) -> Iterator[tuple[str, float]]:
        """Give the expected shares of several kinds."""
        levels = [(level, self._calls.get(level, 0)) for level in _levels(place)]
        for kind in kinds:
            share = USUAL_SHARE
            for level, calls in levels:
                failed = self._failed.get((level, kind), 0)
                share = (failed + share * USUAL_CALLS) / (calls + USUAL_CALLS)
            yield kind, min(max(share, USUAL_SHARE), HIGHEST_USUAL)


def _levels(place: Place) -> tuple[object, ...]:
    """Everything, the series, its calls from one source."""
    return (None, place.who, (place.who, place.source))


def excess_of(cell: Cell, usual: Usual) -> dict[str, float]:
    """Give failures minus what is expected, for every kind (may be below zero)."""
    return {
        kind: cell.failures.get(kind, 0) - cell.attempts * share
        for kind, share in usual.shares(cell.place, FAILURE_KINDS)
    }
