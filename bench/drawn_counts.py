"""Drawn runs, counted in memory as the rollups count them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agents.core.demo.troubles.drawing import DrawnRun, Incident
from diagnostics.core.verdict.cells import Cell, Place, Who
from diagnostics.core.verdict.curves import Curve, Curves, Known, Usual
from diagnostics.core.verdict.judging import WEEK
from diagnostics.core.verdict.novelty import Begun, Told
from diagnostics.core.verdict.stretches import Asked, Stretch, stretch_of
from diagnostics.core.windows import WIDTHS, Grain, ceil, floor

HOUR = WIDTHS[Grain.HOUR]


@dataclass(slots=True)
class DrawnCounts:
    """What a database would answer about these runs."""

    runs: Sequence[DrawnRun]
    deploys: Sequence[Told]
    stretch: Stretch

    @classmethod
    def of(cls, incident: Incident) -> "DrawnCounts":
        """Count an incident's runs, as seen in the last day."""
        asked = Asked(incident.now - 24 * HOUR, incident.now, incident.now)
        told = [
            Told(at, change.kind, change.version, change.source)
            for at, change in incident.changes
        ]
        return cls(list(incident.runs()), told, stretch_of(asked))

    def curves(self) -> Curves:
        """Give every series its calls and failures in each slot."""
        found: dict[Who, Curve] = {}
        begin, width, count = (
            self.stretch.window.since,
            self.stretch.width,
            self.stretch.count,
        )
        for run in self.runs:
            if run.at >= begin:
                curve = found.setdefault(run.place.who, Curve([0] * count))
                slot = (run.at - begin) // width
                curve.add(slot, len(run.calls), failures_of(run))
        return found

    def usual(self) -> Usual:
        """Give what is known of each series from the week before the stretch."""
        until = floor(self.stretch.window.since, HOUR)
        calls, failed = Counter[Who](), defaultdict[Who, Counter[str]](Counter)
        for run in self._between(until - WEEK, until):
            calls[run.place.who] += len(run.calls)
            failed[run.place.who] += failures_of(run)
        return Usual.of({who: Known(calls[who], failed[who]) for who in calls})

    def cells(self, since: datetime, until: datetime) -> Sequence[Cell]:
        """Give what was counted of every place in whole hours between two times."""
        calls, runs, bad = Counter[Place](), Counter[Place](), Counter[Place]()
        kinds: dict[Place, Counter[str]] = defaultdict(Counter)
        for run in self._between(floor(since, HOUR), ceil(until, HOUR)):
            calls[run.place] += len(run.calls)
            runs[run.place] += 1
            bad[run.place] += run.is_degraded
            kinds[run.place] += failures_of(run)
        return [
            Cell(place, calls[place], kinds[place], runs[place], bad[place])
            for place in calls
        ]

    def begun(self, since: datetime, until: datetime) -> Sequence[Begun]:
        """Give the first call of each version that began between two times."""
        first: dict[Place, datetime] = {}
        for run in self.runs:
            first.setdefault(version_of(run.place), run.at)
        return [Begun(place, at) for place, at in first.items() if since <= at < until]

    def told(self, since: datetime, until: datetime) -> Sequence[Told]:
        """Give the deploys between two times."""
        return [one for one in self.deploys if since <= one.at < until]

    def _between(self, since: datetime, until: datetime) -> Iterable[DrawnRun]:
        return (run for run in self.runs if since <= run.at < until)


def failures_of(run: DrawnRun) -> Counter[str]:
    """Count a run's failing calls by kind."""
    found = Counter(kind for kind in run.calls if kind)
    if run.has_unknown_tool:
        found["unknown_tool"] += 1
    return found


def version_of(place: Place) -> Place:
    """Give what is ours of a place."""
    return place._replace(provider=None, model=None, node="", environment=None)
