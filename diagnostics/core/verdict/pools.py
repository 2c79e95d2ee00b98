"""Series added up, so that what hits many of them a little is seen as well."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from diagnostics.core.onset import (
    LEAST_FACTOR,
    LEAST_MORE,
    Onset,
    alarm_of,
    find_onset,
    is_much,
)
from diagnostics.core.rollups import FAILURE_KINDS
from diagnostics.core.verdict.cells import TRANSPORT, Who
from diagnostics.core.verdict.curves import Curves, Usual, slots_of

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
    least = alarm_of(slots, len(pools) * len(KIND_SETS))
    return [
        Fired(pool, kinds, onset)
        for pool in pools
        for kinds in KIND_SETS
        if (onset := joint(pool, kinds, curves, usual, least)) and onset.is_marked
    ]


def lasting_of(fired: Sequence[Fired], curves: Curves, usual: Usual) -> list[Fired]:
    """Keep what goes on: also where a stronger worsening of the same calls is over.

    Few calls cannot tell an end by themselves; what hides behind a trouble that has
    ended must be seen after it too.
    """
    return [
        one
        for one in fired
        if one.onset.over_at is None
        and _is_seen_after(one, _end_of_stronger(one, fired), curves, usual)
    ]


def _end_of_stronger(one: Fired, fired: Iterable[Fired]) -> int | None:
    ends = [
        end
        for other in fired
        if (end := other.onset.over_at) is not None
        and other.onset.gain > one.onset.gain
        and one.onset.at < end
        and other.whos & one.whos
        and set(other.kinds) & set(one.kinds)
    ]
    return max(ends, default=None)


def _is_seen_after(one: Fired, end: int | None, curves: Curves, usual: Usual) -> bool:
    if end is None:
        return True
    slots = slots_of(one.whos, one.kinds, curves, usual)[end:]
    failed = sum(slot.failed for slot in slots)
    expected = sum(slot.expected for slot in slots)
    return failed - expected >= LEAST_MORE and failed >= LEAST_FACTOR * expected


def joint(
    whos: Iterable[Who],
    kinds: Sequence[str],
    curves: Curves,
    usual: Usual,
    least: float = 0.0,
) -> Onset | None:
    """Find since when some series together show more of some kinds, by that gain at least."""
    members = [who for who in whos if who in curves]
    if not _is_worth_it(members, kinds, curves, usual):
        return None
    slots = slots_of(members, kinds, curves, usual)
    onset = find_onset(slots, usual.calls(members), least)
    return onset if onset and is_much(onset, slots) else None


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
