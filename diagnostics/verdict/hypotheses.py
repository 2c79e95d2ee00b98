"""Subsets of the calls that may have got worse, each with the prior that it did.

A subset is everything, one value of a dimension, or two values together. The prior of a
dimension is divided among its values; a version that started with the degradation (`Timing`) has
more.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, combinations
from math import log
from typing import TypeVar

from diagnostics.verdict.cells import TRANSPORT, CountCell, Dimensions

AROUND = timedelta(minutes=15)
"""How far from the interval of the onset a version may start and still be the cause."""


@dataclass(frozen=True, slots=True)
class FirstSeen:
    """The first call with a combination of versions that was not there the week before."""

    place: Dimensions
    at: datetime


@dataclass(frozen=True, slots=True)
class ReportedDeploy:
    at: datetime
    kind: str


@dataclass(frozen=True, slots=True)
class Timing:
    low: datetime | None = None
    high: datetime | None = None
    begun: Sequence[FirstSeen] = ()
    deploys: Sequence[ReportedDeploy] = ()
    others: Sequence[tuple[datetime, datetime]] = ()
    """The intervals of the onsets of other degradations that last."""
    day: Sequence[CountCell] = ()
    """The calls of the day before anything got worse."""

    def first_call(self, touches: Callable[[Dimensions], bool]) -> datetime | None:
        """Return the first call of a version that started around the onset, or None."""
        times = (version.at for version in self.begun if touches(version.place))
        return min(times, default=None)

    def novelty(self, first: datetime | None) -> float:
        """Return what the time of a version's first call adds to its log prior.

        Nothing if it is not near: the interval does not hold every onset.
        """
        if self.low is None or first is None:
            return NEW
        around = self.around(first)
        return log(INNOCENT_EVERY / min(around)) if around else 0.0

    def around(self, at: datetime) -> list[timedelta]:
        """Return the lengths of the intervals of onsets that a time is in, or nearly."""
        intervals = [(self.low, self.high), *self.others] if self.low and self.high else []
        wider = ((low - AROUND, high + AROUND) for low, high in intervals)
        return [high - low for low, high in wider if low <= at <= high]

    def deploy_kinds(self) -> set[str]:
        """Return the kinds of the deploys reported around the onset."""
        return {deploy.kind for deploy in self.deploys if self.around(deploy.at)}


UNTIMED = Timing()
Part = tuple[str, str]
"""A dimension and one of its values."""
Value = TypeVar("Value")

READ: Mapping[str, Callable[[Dimensions], str | None]] = {
    "provider": lambda place: place.provider,
    "model": lambda place: model_name(place.provider, place.model),
    "served": lambda place: place.served,
    "upstream": lambda place: place.upstream,
    "environment": lambda place: place.environment,
    "region": lambda place: place.region,
    "node": lambda place: place.node,
    "source": lambda place: place.source,
    "credential": lambda place: place.credential,
    "prompt_version": lambda place: place.prompt_version,
    "schema": lambda place: versioned_name(place.schema, place.schema_version),
    "release": lambda place: versioned_name(place.source, place.release),
}
"""The dimensions of calls that a cause can have, in the order in which equals are named."""
VERSIONS = frozenset({"prompt_version", "schema", "release"})
CHANGEABLE = VERSIONS | {"served", "upstream", "credential", "region"}
"""Dimensions whose values can be new, and then compared with what they replaced."""
PRIORS: Mapping[str, float] = {
    "model": 0.22,
    "provider": 0.12,
    "source": 0.12,
    "everything": 0.08,
    "node": 0.08,
    "served": 0.05,
    "upstream": 0.05,
    "environment": 0.06,
    "region": 0.06,
    "credential": 0.04,
    "prompt_version": 0.03,
    "release": 0.03,
    "schema": 0.015,
}
PAIRS = 0.05
NEW = 3.0
"""What is added to the log prior of a value that is new, whenever it was called first."""
INNOCENT_EVERY = timedelta(days=9)
"""How often a version starts that is no cause: one near the onset is rarely there by chance."""
RARE = 0.2
"""A value whose share of the day before was less than this part of its share since is back again:
as if new."""
BACK = 4.0
"""The same of a version that is back again."""
SURGED, FEWEST_SURGED = 8.0, 20
"""How many times higher the odds must be that a call is one of a source with a model, and of how
many calls, for something in them to be new, such as a loop: retries make failing ones three."""
PARTLY = 6.0
"""How much less often a new version fails with one value of another dimension only."""
SILENT = {("provider",), ("credential",), ("region",), ("environment",)}
"""What mostly fails without an answer."""
FEWEST_CALLS = 5
"""Values with fewer calls are no hypothesis."""


def model_name(provider: str | None, model: str | None) -> str:
    """Return `provider/model`, as far as both are known."""
    return f"{provider}/{model}" if provider and model else model or provider or "unknown"


def versioned_name(name: str | None, version: str | None) -> str | None:
    if version is None:
        return None
    return f"{name} {version}" if name else version


@dataclass(frozen=True, slots=True)
class Subset:
    """Calls that share the values of some dimensions; without any, all calls."""

    parts: tuple[Part, ...]
    cells: frozenset[int]
    """The indexes of the touched cells that have calls."""
    log_prior: float
    is_new: bool = False

    def touches(self, place: Dimensions) -> bool:
        return all(READ[dimension](place) == value for dimension, value in self.parts)

    @property
    def dimensions(self) -> tuple[str, ...]:
        return tuple(dimension for dimension, _ in self.parts)


def singles_of(
    cells: Sequence[CountCell], before: Collection[CountCell], timing: Timing
) -> list[Subset]:
    """Return everything and each value of each dimension, given the cells before."""
    day = timing.day or before
    of_source, of_source_that_day = (calls_by(READ["source"], some) for some in (cells, day))
    everything = frozenset(range(len(cells)))
    subsets = [Subset((), everything, log(PRIORS["everything"]))]
    for dimension, read in READ.items():
        values: dict[str, set[int]] = defaultdict(set)
        for index, cell in enumerate(cells):
            if value := read(cell.place):
                values[value].add(index)
        past, of_day = (calls_by(read, some) for some in (before, day))
        was_reported = any(value is not None for value in past)
        prior = log(PRIORS[dimension] / max(len(values), 1))
        for value, indexes in values.items():
            called = sum(cells[index].attempts for index in indexes)
            if called < FEWEST_CALLS:
                continue
            # The share of its sources' calls: all that a source has grows with it.
            sources = {cells[index].place.source for index in indexes}
            calls = sum(of_source[source] for source in sources)
            calls_of_day = sum(of_source_that_day[source] for source in sources)
            subset = Subset(((dimension, value),), frozenset(indexes), prior)
            is_back = of_day[value] * calls < RARE * called * calls_of_day
            # A sender that merely begins to report a dimension has changed nothing.
            is_changeable = dimension in CHANGEABLE and (was_reported or dimension in VERSIONS)
            if is_changeable and (is_back or not past[value]):
                first = timing.first_call(subset.touches)
                bonus = BACK if past[value] else timing.novelty(first)
                subset = replace(subset, log_prior=prior + bonus, is_new=True)
            subsets.append(subset)
    return subsets


def calls_by(read: Callable[[Dimensions], Value], cells: Iterable[CountCell]) -> Counter[Value]:
    counts = Counter[Value]()
    for cell in cells:
        counts[read(cell.place)] += cell.attempts
    return counts


def surged_pairs(cells: Iterable[CountCell], before: Iterable[CountCell]) -> set[frozenset[Part]]:
    """Return the known sources and models that have many more calls together than before."""

    def called(place: Dimensions) -> tuple[Part, Part]:
        return ("source", place.source or ""), ("model", model_name(place.provider, place.model))

    now, past = (calls_by(called, some) for some in (cells, before))
    known = {*chain(*past)}

    def odds(counts: Counter[tuple[Part, Part]], pair: tuple[Part, Part]) -> float:
        return (counts[pair] + 0.5) / (counts.total() - counts[pair] + 0.5)

    return {
        frozenset(pair)
        for pair, count in now.items()
        if count >= FEWEST_SURGED and known.issuperset(pair)
        if odds(now, pair) >= SURGED * odds(past, pair)
    }


def pairs_of(
    best: Sequence[Subset], singles: Sequence[Subset], surged: Collection[frozenset[Part]] = ()
) -> Iterator[Subset]:
    """Yield the intersections of two subsets of different dimensions.

    Of subsets with the same cells only the likeliest is paired. A new version may fail at one
    of its models only, even if that model has no other calls; so may what surged.
    """
    values = Counter(subset.parts[0][0] for subset in singles if subset.parts)
    distinct: dict[frozenset[int], Subset] = {}
    named = [subset for subset in best if subset.parts]
    for subset in sorted(named, key=lambda subset: -subset.log_prior):
        # A credential is already one of a source and a provider.
        if subset.dimensions != ("credential",):
            distinct.setdefault(subset.cells, subset)
    intersections: dict[frozenset[int], tuple[Subset, Subset, bool]] = {}
    for first, second in combinations(distinct.values(), 2):
        new, other = (first, second) if first.is_new else (second, first)
        both = new.cells & other.cells
        has_surged = frozenset((*new.parts, *other.parts)) in surged
        is_proper = (both != new.cells and (both != other.cells or new.is_new)) or has_surged
        if both and is_proper and new.dimensions != other.dimensions:
            intersections.setdefault(both, (new, other, has_surged))
    prior = log(PAIRS / max(len(intersections), 1))
    for both, (new, other, has_surged) in intersections.items():
        log_prior = prior + BACK * has_surged
        if new.is_new:
            log_prior = new.log_prior - log(PARTLY * values[other.parts[0][0]])
        yield Subset((*new.parts, *other.parts), both, log_prior, new.is_new or has_surged)


def mark_prior(subset: Subset, kinds: Sequence[str]) -> float:
    """Return the log prior that a cause of this sort makes failures of these kinds."""
    silent = 0.8 if subset.dimensions in SILENT else 0.4
    if not VERSIONS.isdisjoint(subset.dimensions):
        silent = 0.2
    return log(silent if set(kinds) <= TRANSPORT else 1 - silent)
