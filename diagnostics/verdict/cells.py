"""Counts of calls with the same dimensions, and their baseline."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from operator import add, sub
from typing import NamedTuple

from diagnostics.analysis.series import SeriesKey
from diagnostics.queries.call_counts import UNSAID
from diagnostics.store.rollups import CALL_ERRORS, FAILURE_KINDS

TRANSPORT = frozenset(CALL_ERRORS)
"""Kinds of failure without any answer."""
LIMITED = "call_rate_limited"
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
    region: str | None = None
    credential: str | None = None

    @property
    def upstream(self) -> str | None:
        """The host that answered, as far as it was reported."""
        return self.served.partition(" at ")[2] or None if self.served else None

    @property
    def series(self) -> "SeriesKey":
        return SeriesKey(self.environment, self.node, self.provider, self.model)

    @property
    def versions(self) -> "Dimensions":
        """Our own versions among the dimensions, as in `FirstSeen`."""
        return Dimensions(
            prompt_version=self.prompt_version,
            schema=self.schema,
            schema_version=self.schema_version,
            source=self.source,
            release=self.release,
        )


@dataclass(frozen=True, slots=True)
class CountCell:
    """Counts of one place in one window; `failures` by kind, each kind once per call."""

    place: Dimensions
    attempts: int
    failures: Mapping[str, int] = field(hash=False)
    runs: int = 0
    degraded: int = 0
    repaired: int = 0

    @property
    def failed(self) -> int:
        return sum(self.failures.values())

    def of_kinds(self, kinds: Collection[str]) -> tuple[int, int]:
        """Return failures of some kinds, and the calls that could fail so.

        Only a call that was answered can have a bad answer: in an outage few are left.
        """
        failed = sum(self.failures.get(kind, 0) for kind in kinds)
        calls = self.attempts - unanswered(self.failures, kinds)
        return min(failed, calls), calls


def unanswered(failures: Mapping[str, int], kinds: Collection[str] = ()) -> int:
    """Return the calls without an answer, if some kinds are all of answers; else 0."""
    if not TRANSPORT.isdisjoint(kinds):
        return 0
    return sum([count for kind, count in failures.items() if kind in TRANSPORT])


def without_failure_only(*parts: Sequence[CountCell]) -> list[list[CountCell]]:
    """Return the cells of each part without those of sources that report failures only.

    A source with failing calls only, and no run that ended well, has no rate that could rise.
    """
    calls, good = Counter[str | None](), Counter[str | None]()
    for cell in chain(*parts):
        calls[cell.place.source] += cell.attempts
        good[cell.place.source] += max(cell.attempts - cell.failed, 0) + cell.runs - cell.degraded
    silent = {source for source in calls if calls[source] >= LEAST_TOLD and good[source] <= 0}
    return [[cell for cell in part if cell.place.source not in silent] for part in parts]


ENDS = ("attempts", "succeeded", "runs", "degraded", "repaired", "provider_failed")
COUNTED: tuple[str, ...] = (*ENDS, *FAILURE_KINDS)
"""The measures of a query, in order."""
CLEAN = ENDS.index("degraded")
"""The index of the first measure that counts failures."""
UNANSWERED = "call_provider_error"
"""The kind of at least one failure in a run that ended because its provider failed."""


class CallTotals(NamedTuple):
    """Calls, failing ones by kind, runs, degraded and repaired ones."""

    calls: int
    failures: Mapping[str, int]
    runs: int = 0
    degraded: int = 0
    repaired: int = 0


def count_calls(measures: Sequence[int]) -> CallTotals:
    """Count calls, including unreported ones.

    A successful run had one good call; a recovered or degraded one had at least one failure.
    """
    attempts, succeeded, runs, degraded, repaired, without_answer, *kinds = measures
    if not any(measures[CLEAN:]):  # Most minutes are.
        return CallTotals(attempts + max(runs - succeeded, 0), {}, runs)
    failures = _by_kind(kinds)
    good, reported = max(runs - degraded - succeeded, 0), sum(failures.values())
    calls, failed = attempts + good, degraded + min(repaired, good)
    if (missing := without_answer - unanswered(failures)) > 0:
        failures[UNANSWERED] = failures.get(UNANSWERED, 0) + missing
        calls, reported = calls + missing, reported + missing
    if (missing := failed - reported) > 0:
        failures[UNSAID] = failures.get(UNSAID, 0) + missing
        calls += missing
    return CallTotals(calls, failures, runs, degraded, repaired)


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
        named = [
            CountCell(
                place._replace(served=name), attempts, _by_kind(kinds), runs, degraded, repaired
            )
            for name, (attempts, _, runs, degraded, repaired, _, *kinds) in served.items()
            if name is not None
        ]
        yield from named
        calls, failures, *ends = count_calls(totals)
        remaining = Counter(failures)
        for cell in named:
            calls -= cell.attempts
            ends = list(map(sub, ends, (cell.runs, cell.degraded, cell.repaired)))
            remaining.subtract(cell.failures)
        if calls or ends[0]:
            yield CountCell(place, calls, {k: n for k, n in remaining.items() if n}, *ends)


def _by_kind(counts: Sequence[int]) -> dict[str, int]:
    return dict(compress(zip(FAILURE_KINDS, counts, strict=True), counts))
