"""What is counted of calls that had everything in common, and what is usual for them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from diagnostics.core.rollups import CALL_ERRORS, FAILURE_KINDS

TRANSPORT = frozenset(CALL_ERRORS)
"""Kinds that say that no answer came at all."""
USUAL_SHARE = 0.002
"""What is expected of a kind of failure that a model never showed."""
USUAL_CALLS = 50
HIGHEST_USUAL = 0.95


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
    """How often each series showed each kind of failure before."""

    _calls: dict[Who, int] = field(default_factory=lambda: defaultdict(int))
    _failed: dict[tuple[Who, str], int] = field(
        default_factory=lambda: defaultdict(int)
    )
    _all_calls: int = 0
    _all_failed: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @classmethod
    def of(cls, before: Iterable[Cell]) -> "Usual":
        """Learn from the cells of a healthy stretch."""
        usual = cls()
        for cell in before:
            who = cell.place.who
            usual._calls[who] += cell.attempts
            usual._all_calls += cell.attempts
            for kind, failed in cell.failures.items():
                usual._failed[who, kind] += failed
                usual._all_failed[kind] += failed
        return usual

    def share(self, who: Who, kind: str) -> float:
        """Give the expected share of a kind, drawn towards that of all series together."""
        everywhere = (self._all_failed.get(kind, 0) + USUAL_SHARE * USUAL_CALLS) / (
            self._all_calls + USUAL_CALLS
        )
        calls = self._calls.get(who, 0)
        failed = self._failed.get((who, kind), 0)
        share = (failed + everywhere * USUAL_CALLS) / (calls + USUAL_CALLS)
        return min(max(share, USUAL_SHARE), HIGHEST_USUAL)

    def calls(self, who: Who) -> int:
        """Tell how many calls this rests on."""
        return self._calls.get(who, 0)


def excess_of(cell: Cell, usual: Usual) -> dict[str, float]:
    """Give failures minus what is expected, for every kind (may be below zero)."""
    who = cell.place.who
    return {
        kind: cell.failures.get(kind, 0) - cell.attempts * usual.share(who, kind)
        for kind in FAILURE_KINDS
    }
