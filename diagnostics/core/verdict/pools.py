"""Series added up, so that what hits many of them a little is seen as well."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log

from diagnostics.core.rollups import FAILURE_KINDS
from diagnostics.core.verdict.cells import TRANSPORT, Who
from diagnostics.core.verdict.curves import Curves, Usual, buckets_of
from diagnostics.core.verdict.onset import Bucket, Onset, find_onset

SURE = 0.5
"""Evidence beyond what the number of pools and slots explains by itself (log)."""
LEAST_MORE = 3.5
"""Failures beyond the usual, below which nothing is said."""

POOLS: Sequence[Callable[[Who], object]] = (
    lambda who: who,
    lambda who: (who.provider, who.model),
    lambda who: who.provider,
    lambda who: who.node,
    lambda who: who.environment,
    lambda _: None,
)
SILENT = tuple(sorted(TRANSPORT))
KIND_SETS: Sequence[tuple[str, ...]] = (
    FAILURE_KINDS,
    SILENT,
    *((kind,) for kind in FAILURE_KINDS),
)


@dataclass(frozen=True, slots=True)
class Fired:
    """Series that together got worse beyond chance, in which kinds, and since when."""

    whos: frozenset[Who]
    kinds: tuple[str, ...]
    onset: Onset


def find_fired(curves: Curves, usual: Usual) -> list[Fired]:
    """Give every pool of series that got worse, also those where it is over by now."""
    pools = list(_pools(curves))
    slots = max((len(curve.calls) for curve in curves.values()), default=1)
    alarm = log(slots) + log(max(len(pools) * len(KIND_SETS), 1)) / 2 + SURE
    found = (
        Fired(pool, kinds, one)
        for pool in pools
        for kinds in KIND_SETS
        if (one := joint(pool, kinds, curves, usual))
    )
    return [one for one in found if one.onset.gain >= alarm and one.onset.is_marked]


def joint(
    whos: Iterable[Who], kinds: Sequence[str], curves: Curves, usual: Usual
) -> Onset | None:
    """Find since when some series together show more of some kinds of failure."""
    members = [who for who in whos if who in curves]
    if not _is_worth_it(members, kinds, curves, usual):
        return None
    buckets = buckets_of(members, kinds, curves, usual)
    onset = find_onset(buckets, usual.calls(members))
    if onset is None or _more(buckets[onset.at : onset.over_at]) < LEAST_MORE:
        return None
    return onset


def _more(buckets: Iterable[Bucket]) -> float:
    return sum(one.failed - one.expected for one in buckets)


def _is_worth_it(
    members: Sequence[Who], kinds: Sequence[str], curves: Curves, usual: Usual
) -> bool:
    """Whether any stretch of these can hold enough: most pools and kinds show nothing."""
    failed = sum(
        sum(curves[who].failed[kind])
        for who in members
        for kind in kinds
        if kind in curves[who].failed
    )
    return failed >= LEAST_MORE and (
        len(kinds) > 1 or failed >= _expected(members, kinds[0], curves, usual)
    )


def _expected(members: Sequence[Who], kind: str, curves: Curves, usual: Usual) -> float:
    return sum(sum(curves[who].calls) * usual.share(who, kind) for who in members)


def _pools(curves: Curves) -> Iterator[frozenset[Who]]:
    seen: set[frozenset[Who]] = set()
    for key in POOLS:
        parts: dict[object, set[Who]] = defaultdict(set)
        for who in curves:
            parts[key(who)].add(who)
        for part in map(frozenset, parts.values()):
            if part not in seen:
                seen.add(part)
                yield part
