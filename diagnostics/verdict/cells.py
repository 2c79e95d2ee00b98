"""Counts of calls with the same dimensions, and their baseline."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import add, sub
from typing import NamedTuple

from diagnostics.analysis.series import SeriesKey
from diagnostics.queries.call_counts import UNSAID
from diagnostics.store.rollups import CALL_ERRORS, FAILURE_KINDS

TRANSPORT = frozenset(CALL_ERRORS)
"""Kinds of failure without any answer."""
LIMITED = "call_rate_limited"
USUAL_SHARE = 0.002
"""The expected share of a kind of failure that a model never had."""
USUAL_CALLS = 50
HIGHEST_USUAL = 0.95
LEAST_TOLD = 20
"""With this many failing calls and no other, a source reports failures only."""
LOCAL = "local"
"""The environment of a developer's machine: excluded from the verdict if there are others."""


class Dimensions(NamedTuple):
    """The dimensions that calls share; None is a value (not reported)."""

    provider: str | None = None
    model: str | None = None
    prompt_version: str | None = None
    schema: str | None = None
    schema_version: str | None = None
    source: str | None = None
    release: str | None = None
    node: str = ""
    environment: str | None = None
    # What answered, if not the requested model (failsoft.events.name_served).
    served: str | None = None

    @property
    def series(self) -> "SeriesKey":
        """The series of the calls."""
        return SeriesKey(self.environment, self.node, self.provider, self.model)

    @property
    def versions(self) -> "Dimensions":
        """Our own versions among the dimensions, as in `FirstSeen`."""
        return self._replace(provider=None, model=None, node="", environment=None, served=None)


@dataclass(frozen=True, slots=True)
class CountCell:
    """Counts of one place in one window; `failures` by kind, each kind once per call."""

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
    """Calls that are left out, or some of their failures, to look beside a cause."""

    touches: Callable[[Dimensions], bool]
    kinds: frozenset[str] | None = None
    """The failures that are left out; None leaves out the calls."""
    is_of_series: bool = False
    """Whether the dimensions of a series identify the calls."""


def omitted_kinds(left_out: Iterable[OmittedCalls], place: Dimensions) -> Collection[str] | None:
    """Return the kinds of failure of a place that are left out; None for all its calls."""
    kinds: set[str] = set()
    for omission in left_out:
        if omission.touches(place):
            if omission.kinds is None:
                return None
            kinds |= omission.kinds
    return kinds


def leave_out(
    left_out: Iterable[OmittedCalls], place: Dimensions, calls: int, failures: Mapping[str, int]
) -> tuple[int, Mapping[str, int]]:
    """Return the calls and failures of a place without those left out."""
    omitted = omitted_kinds(left_out, place)
    if omitted is None:
        return 0, {}
    return calls, {kind: count for kind, count in failures.items() if kind not in omitted}


@dataclass(slots=True)
class FailureBaseline:
    """How often each series, and each source in it, had each kind of failure before."""

    _calls: dict[object, int] = field(default_factory=lambda: defaultdict(int))
    _failed: dict[tuple[object, str], int] = field(default_factory=lambda: defaultdict(int))

    @classmethod
    def of(cls, before: Iterable[CountCell]) -> "FailureBaseline":
        """Return the baseline of a healthy stretch."""
        baseline = cls()
        for cell in before:
            for level in _levels(cell.place):
                baseline._calls[level] += cell.attempts
                for kind, failed in cell.failures.items():
                    baseline._failed[level, kind] += failed
        return baseline

    def shares(self, place: Dimensions, kinds: Iterable[str]) -> Iterator[tuple[str, float]]:
        """Yield the expected shares of kinds, each level shrunk towards the one above."""
        levels = [(level, self._calls.get(level, 0)) for level in _levels(place)]
        for kind in kinds:
            share = USUAL_SHARE
            for level, calls in levels:
                failed = self._failed.get((level, kind), 0)
                share = (failed + share * USUAL_CALLS) / (calls + USUAL_CALLS)
            yield kind, min(max(share, USUAL_SHARE), HIGHEST_USUAL)


def _levels(place: Dimensions) -> tuple[object, ...]:
    """Return the levels of a place: everything, its series, its series and source."""
    return (None, place.series, (place.series, place.source))


def without_failure_only(
    cells: Sequence[CountCell], before: Sequence[CountCell]
) -> tuple[list[CountCell], list[CountCell]]:
    """Return the cells without those of sources that report failures only.

    A source with failing calls only, and no ends of runs, has no rate that could rise.
    """
    calls: dict[str | None, list[int]] = defaultdict(lambda: [0, 0, 0])
    for cell in (*cells, *before):
        totals = calls[cell.place.source]
        totals[0] += cell.attempts
        totals[1] += cell.failed
        totals[2] += cell.runs
    silent = {
        source
        for source, (attempts, failed, runs) in calls.items()
        if attempts >= LEAST_TOLD and failed >= attempts and not runs
    }
    return (
        [cell for cell in cells if cell.place.source not in silent],
        [cell for cell in before if cell.place.source not in silent],
    )


def excess_of(cell: CountCell, baseline: FailureBaseline) -> dict[str, float]:
    """Return failures minus what is expected, for every kind (may be below zero)."""
    return {
        kind: cell.failures.get(kind, 0) - cell.attempts * share
        for kind, share in baseline.shares(cell.place, FAILURE_KINDS)
    }


ENDS = ("attempts", "succeeded", "runs", "degraded", "repaired", "provider_failed")
COUNTED: tuple[str, ...] = (*ENDS, *FAILURE_KINDS)
"""The measures of a query, in order."""
CLEAN = ENDS.index("degraded")
"""The index of the first measure that counts failures."""
UNANSWERED = "call_provider_error"
"""The kind of at least one failure in a run that ended because its provider failed."""


class CallTotals(NamedTuple):
    """Calls, failing ones by kind, runs and degraded runs."""

    calls: int
    failures: Mapping[str, int]
    runs: int = 0
    degraded: int = 0


def count_calls(measures: Sequence[int]) -> CallTotals:
    """Count calls, including unreported ones.

    A successful run had one good call; a recovered or degraded one had at least one failure.
    """
    attempts, succeeded, runs, degraded, repaired, unanswered, *kinds = measures
    if not any(measures[CLEAN:]):  # Most minutes are.
        return CallTotals(attempts + max(runs - succeeded, 0), {}, runs)
    failures = {k: count for k, count in zip(FAILURE_KINDS, kinds, strict=True) if count}
    unanswered_calls = sum(failures.get(kind, 0) for kind in TRANSPORT)
    good = max(runs - degraded - succeeded, 0)
    unreported = {UNANSWERED: max(unanswered - unanswered_calls, 0)}
    reported = sum(failures.values()) + unreported[UNANSWERED]
    unreported[UNSAID] = max(degraded + min(repaired, good) - reported, 0)
    for kind, missing in unreported.items():
        if missing:
            failures[kind] = failures.get(kind, 0) + missing
    calls = attempts + good + sum(unreported.values())
    return CallTotals(calls, failures, runs, degraded)


def read_cells(rows: Iterable[tuple[Dimensions, Sequence[int]]]) -> Iterator[CountCell]:
    """Yield cells from places and their measures.

    A call names what served it, the end of its run does not: unreported calls are counted over
    all of them together, and belong to none in particular.
    """
    places: dict[Dimensions, dict[str | None, Sequence[int]]] = defaultdict(dict)
    for place, measures in rows:
        places[place._replace(served=None)][place.served] = measures
    for place, served in places.items():
        totals = [0] * len(COUNTED)
        for measures in served.values():
            totals = list(map(add, totals, measures))
        calls, failures, runs, degraded = count_calls(totals)
        remaining_failures = dict(failures)
        for name, measures in served.items():
            if name is None:
                continue
            cell = _served_cell(place._replace(served=name), measures)
            calls, runs, degraded = map(
                sub, (calls, runs, degraded), (cell.attempts, cell.runs, cell.degraded)
            )
            remaining_failures = {
                kind: count - cell.failures.get(kind, 0)
                for kind, count in remaining_failures.items()
            }
            yield cell
        if calls or runs:
            nonzero = {kind: count for kind, count in remaining_failures.items() if count}
            yield CountCell(place, calls, nonzero, runs, degraded)


def _served_cell(place: Dimensions, measures: Sequence[int]) -> CountCell:
    attempts, _, runs, degraded, _, _, *kinds = measures
    failures = {kind: count for kind, count in zip(FAILURE_KINDS, kinds, strict=True) if count}
    return CountCell(place, attempts, failures, runs, degraded)
