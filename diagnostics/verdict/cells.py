"""What is counted of calls that had everything in common, and what is usual for them."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import add, sub
from typing import NamedTuple

from diagnostics.analysis.series import SeriesKey
from diagnostics.queries.call_counts import UNSAID
from diagnostics.store.rollups import CALL_ERRORS, FAILURE_KINDS

TRANSPORT = frozenset(CALL_ERRORS)
"""Kinds that say that no answer came at all."""
LIMITED = "call_rate_limited"
USUAL_SHARE = 0.002
"""What is expected of a kind of failure that a model never showed."""
USUAL_CALLS = 50
HIGHEST_USUAL = 0.95
LEAST_TOLD = 20
"""Failing calls of a source without any other, from which on it tells of no others."""
LOCAL = "local"
"""The environment of one machine: beside others, it is no part of their verdict."""


class Dimensions(NamedTuple):
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
    # Who answered where it is not the requested model (failsoft.events.name_served).
    served: str | None = None

    @property
    def who(self) -> "SeriesKey":
        """The planner behind the calls."""
        return SeriesKey(self.environment, self.node, self.provider, self.model)

    @property
    def versions(self) -> "Dimensions":
        """What is ours of it, as `FirstSeen` names it."""
        return self._replace(provider=None, model=None, node="", environment=None, served=None)


@dataclass(frozen=True, slots=True)
class CountCell:
    """Counts of one place in one window; `failures` by kind, no kind twice in a call."""

    place: Dimensions
    attempts: int
    failures: Mapping[str, int]
    runs: int = 0
    degraded: int = 0

    @property
    def failed(self) -> int:
        """All failing calls."""
        return sum(self.failures.values())


@dataclass(frozen=True, slots=True)
class OmittedCalls:
    """Calls that are left out, or some of their failures, to see what is beside a cause."""

    touches: Callable[[Dimensions], bool]
    kinds: frozenset[str] | None = None
    """The failures that are left out; None: the calls themselves."""
    is_of_series: bool = False
    """Whether what a series names says which calls they are."""


def omitted_kinds(left_out: Iterable[OmittedCalls], place: Dimensions) -> Collection[str] | None:
    """Return the failures of a place that are left out; None: all its calls are."""
    kinds: set[str] = set()
    for one in left_out:
        if one.touches(place):
            if one.kinds is None:
                return None
            kinds |= one.kinds
    return kinds


def leave_out(
    left_out: Iterable[OmittedCalls], place: Dimensions, calls: int, failures: Mapping[str, int]
) -> tuple[int, Mapping[str, int]]:
    """Return the calls and failures of a place without all that is left out."""
    omitted = omitted_kinds(left_out, place)
    if omitted is None:
        return 0, {}
    return calls, {kind: seen for kind, seen in failures.items() if kind not in omitted}


@dataclass(slots=True)
class FailureBaseline:
    """How often each series, and each source in it, showed each kind of failure before."""

    _calls: dict[object, int] = field(default_factory=lambda: defaultdict(int))
    _failed: dict[tuple[object, str], int] = field(default_factory=lambda: defaultdict(int))

    @classmethod
    def of(cls, before: Iterable[CountCell]) -> "FailureBaseline":
        """Learn from the cells of a healthy stretch."""
        usual = cls()
        for cell in before:
            for level in _levels(cell.place):
                usual._calls[level] += cell.attempts
                for kind, failed in cell.failures.items():
                    usual._failed[level, kind] += failed
        return usual

    def shares(self, place: Dimensions, kinds: Iterable[str]) -> Iterator[tuple[str, float]]:
        """Return the expected shares of kinds: each level is drawn towards the one above."""
        levels = [(level, self._calls.get(level, 0)) for level in _levels(place)]
        for kind in kinds:
            share = USUAL_SHARE
            for level, calls in levels:
                failed = self._failed.get((level, kind), 0)
                share = (failed + share * USUAL_CALLS) / (calls + USUAL_CALLS)
            yield kind, min(max(share, USUAL_SHARE), HIGHEST_USUAL)


def _levels(place: Dimensions) -> tuple[object, ...]:
    """Everything, the series, its calls from one source."""
    return (None, place.who, (place.who, place.source))


def told_whole(
    cells: Sequence[CountCell], before: Sequence[CountCell]
) -> tuple[list[CountCell], list[CountCell]]:
    """Return the cells of sources that tell of what goes well, too.

    A source of which only failing calls are known, and no ends of runs, has no rate that
    could rise.
    """
    calls: dict[str | None, list[int]] = defaultdict(lambda: [0, 0, 0])
    for cell in (*cells, *before):
        known = calls[cell.place.source]
        known[0] += cell.attempts
        known[1] += cell.failed
        known[2] += cell.runs
    silent = {
        source
        for source, (made, failed, runs) in calls.items()
        if made >= LEAST_TOLD and failed >= made and not runs
    }
    return (
        [cell for cell in cells if cell.place.source not in silent],
        [cell for cell in before if cell.place.source not in silent],
    )


def excess_of(cell: CountCell, usual: FailureBaseline) -> dict[str, float]:
    """Return failures minus what is expected, for every kind (may be below zero)."""
    return {
        kind: cell.failures.get(kind, 0) - cell.attempts * share
        for kind, share in usual.shares(cell.place, FAILURE_KINDS)
    }


ENDS = ("attempts", "succeeded", "runs", "degraded", "repaired", "provider_failed")
COUNTED: tuple[str, ...] = (*ENDS, *FAILURE_KINDS)
"""The measures that are asked for, in their order."""
CLEAN = ENDS.index("degraded")
"""From here on measures count what went wrong."""
UNANSWERED = "call_provider_error"
"""What a run met at least that ended because its provider failed."""


class CallTotals(NamedTuple):
    """Calls, failing ones by kind, runs and degraded runs."""

    calls: int
    failures: Mapping[str, int]
    runs: int = 0
    degraded: int = 0


def count_calls(measures: Sequence[int]) -> CallTotals:
    """Count calls, those that nobody told included.

    A run that ended well had one good call; one that was repaired or degraded had one at
    least that failed.
    """
    attempts, succeeded, runs, degraded, repaired, unanswered, *kinds = measures
    if not any(measures[CLEAN:]):  # As most minutes are.
        return CallTotals(attempts + max(runs - succeeded, 0), {}, runs)
    failures = {k: seen for k, seen in zip(FAILURE_KINDS, kinds, strict=True) if seen}
    silent = sum(failures.get(kind, 0) for kind in TRANSPORT)
    good = max(runs - degraded - succeeded, 0)
    untold = {UNANSWERED: max(unanswered - silent, 0)}
    told = sum(failures.values()) + untold[UNANSWERED]
    untold[UNSAID] = max(degraded + min(repaired, good) - told, 0)
    for kind, missing in untold.items():
        if missing:
            failures[kind] = failures.get(kind, 0) + missing
    calls = attempts + good + sum(untold.values())
    return CallTotals(calls, failures, runs, degraded)


def read_cells(rows: Iterable[tuple[Dimensions, Sequence[int]]]) -> Iterator[CountCell]:
    """Make cells of places and their measures.

    A call knows who served it, the end of its run does not: what nobody told is counted where
    all who served are together, and is then nobody's in particular.
    """
    places: dict[Dimensions, dict[str | None, Sequence[int]]] = defaultdict(dict)
    for place, measures in rows:
        places[place._replace(served=None)][place.served] = measures
    for place, served in places.items():
        rest = [0] * len(COUNTED)
        for measures in served.values():
            rest = list(map(add, rest, measures))
        calls, failures, runs, degraded = count_calls(rest)
        left = dict(failures)
        for name, measures in served.items():
            if name is None:
                continue
            cell = _told_cell(place._replace(served=name), measures)
            calls, runs, degraded = map(
                sub, (calls, runs, degraded), (cell.attempts, cell.runs, cell.degraded)
            )
            left = {kind: seen - cell.failures.get(kind, 0) for kind, seen in left.items()}
            yield cell
        if calls or runs:
            kept = {kind: seen for kind, seen in left.items() if seen}
            yield CountCell(place, calls, kept, runs, degraded)


def _told_cell(place: Dimensions, measures: Sequence[int]) -> CountCell:
    attempts, _, runs, degraded, _, _, *kinds = measures
    failures = {kind: seen for kind, seen in zip(FAILURE_KINDS, kinds, strict=True) if seen}
    return CountCell(place, attempts, failures, runs, degraded)
