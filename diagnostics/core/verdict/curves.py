"""Calls and failures of each series, slot by slot and by kind of failure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TypeVar

from diagnostics.core.onset import Slot
from diagnostics.core.verdict.cells import Who

Number = TypeVar("Number", int, float)
DRAWN_TOWARDS = 20
"""Calls of the average series that every series' own are added to."""
USUAL_WHEN_NEW = 0.004
"""The share of each kind of failure where nothing is known."""
KNOWN_CALLS = 200
LEAST_USUAL = 0.001


@dataclass(slots=True)
class Curve:
    """Calls a slot, and failures a slot of each kind that was seen at all."""

    calls: list[int]
    failed: dict[str, list[int]] = field(default_factory=dict)

    def add(self, slot: int, calls: int, failures: Mapping[str, int]) -> None:
        """Count more calls in a slot."""
        self.calls[slot] += calls
        for kind, failed in failures.items():
            if failed:
                found = self.failed.get(kind)
                if found is None:
                    found = self.failed[kind] = [0] * len(self.calls)
                found[slot] += failed


Curves = Mapping[Who, Curve]


@dataclass(frozen=True, slots=True)
class Known:
    """Calls of a series in the time before, and its failures by kind."""

    calls: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)


NOTHING = Known()


@dataclass(frozen=True, slots=True)
class Usual:
    """What is known of each series from the time before."""

    known: Mapping[Who, Known]
    average: Mapping[str, float] | None = None
    """The share of each kind over all series; None where too little is known."""

    @classmethod
    def of(cls, known: Mapping[Who, Known], settled: Collection[Who] | None = None) -> "Usual":
        """Learn the average share of each kind too.

        `settled` series were called before the last day already. What is as new as that
        may never have been well: it is measured by the others.
        """
        if settled and sum(known[who].calls for who in settled) >= KNOWN_CALLS:
            known = {who: known[who] for who in settled}
        calls = sum(one.calls for one in known.values())
        if calls < KNOWN_CALLS:
            return cls(known)
        kinds = {kind for one in known.values() for kind in one.failures}
        return cls(
            known,
            {
                kind: sum(one.failures.get(kind, 0) for one in known.values()) / calls
                for kind in kinds
            },
        )

    def share(self, who: Who, kind: str) -> float:
        """Give the expected share of a kind, drawn towards that of all series."""
        if self.average is None:
            average = USUAL_WHEN_NEW
        else:
            average = max(self.average.get(kind, 0.0), LEAST_USUAL)
        own = self.known.get(who, NOTHING)
        drawn = own.failures.get(kind, 0) + average * DRAWN_TOWARDS
        return max(drawn / (own.calls + DRAWN_TOWARDS), LEAST_USUAL)

    def calls(self, whos: Iterable[Who]) -> float:
        """Give the calls that the shares of these series rest on."""
        return sum(self.known.get(w, NOTHING).calls for w in whos) + DRAWN_TOWARDS


def slots_of(whos: Iterable[Who], kinds: Sequence[str], curves: Curves, usual: Usual) -> list[Slot]:
    """Add up series and kinds: calls, failures and the usual failures of each slot."""
    members = [(who, curves[who]) for who in whos if who in curves]
    if not members:
        return []
    calls = _add_up([curve.calls for _, curve in members])
    failed = _add_up(
        [row for _, curve in members for kind, row in curve.failed.items() if kind in kinds]
    )
    expected = []
    for who, curve in members:
        share = sum(usual.share(who, kind) for kind in kinds)
        expected.append([one * share for one in curve.calls])
    fewest = map(min, failed, calls) if failed else repeat(0, len(calls))
    return list(map(Slot, calls, fewest, _add_up(expected)))


def _add_up(rows: Sequence[Sequence[Number]]) -> Sequence[Number]:
    """Add up slot by slot: it is done for every pool and kind, many thousand slots."""
    return rows[0] if len(rows) == 1 else list(map(sum, zip(*rows, strict=True)))
