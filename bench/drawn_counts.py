"""Drawn runs, counted in memory as the rollups count them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import add

from diagnostics.analysis.detectors.change import MINUTE
from diagnostics.analysis.detectors.replay import ProjectDetectors
from diagnostics.analysis.series import SeriesKey, SeriesOnset
from diagnostics.store.windows import WIDTHS, Grain, ceil, floor
from diagnostics.verdict.cells import CountCell, Dimensions
from diagnostics.verdict.curves import Curves, SeriesCurve, Stretch
from diagnostics.verdict.hypotheses import FirstSeen, ReportedDeploy
from diagnostics.verdict.judging import Onsets
from tests.incidents.drawn_runs import DrawnRun

HOUR = WIDTHS[Grain.HOUR]


@dataclass(slots=True)
class DrawnCounts:
    """What a database would answer about these runs."""

    runs: Sequence[DrawnRun]
    reported: Sequence[ReportedDeploy]
    stretch: Stretch
    silent: frozenset[str] = frozenset()
    """Sources that tell of failing calls only, and of no ends of runs."""

    def curves(self, stretch: Stretch, of: frozenset[SeriesKey] | None = None) -> Curves:
        """Give series (None: all) their calls and failures in each slot of a stretch."""
        found: dict[SeriesKey, SeriesCurve] = {}
        for run in self._between(stretch.window.since, stretch.window.until):
            if run.calls and (of is None or run.place.series in of):
                curve = found.setdefault(run.place.series, SeriesCurve([0] * stretch.count))
                slot = (run.at - stretch.origin) // stretch.width
                curve.add(slot, len(run.calls), failures_of(run))
        return found

    def cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Give what was counted of every place in whole hours between two times."""
        return self.cells_since(floor(since, HOUR), ceil(until, HOUR))

    def cells_since(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        calls, kinds = Counter[Dimensions](), defaultdict[Dimensions, Counter[str]](Counter)
        ends = defaultdict[Dimensions, list[int]](lambda: [0, 0, 0])
        for run in self._between(since, until):
            calls[run.place] += len(run.calls)
            if run.place.source not in self.silent:
                ended = 1, run.is_degraded, len(run.calls) > 1 and not run.is_degraded
                ends[run.place] = list(map(add, ends[run.place], ended))
            _count(run, kinds[run.place])
        return [CountCell(one, calls[one], kinds[one], *ends[one]) for one in calls]

    def series_cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Give the same by series, to the second."""
        cells = self.cells_since(since, until)
        return [replace(one, place=Dimensions(**one.place.series._asdict())) for one in cells]

    def begun(self, since: datetime, until: datetime) -> Sequence[FirstSeen]:
        """Give the first call of each version that began between two times."""
        first: dict[Dimensions, datetime] = {}
        for run in self.runs:
            first.setdefault(version_of(run.place), run.at)
        return [FirstSeen(place, at) for place, at in first.items() if since <= at < until]

    def deploys(self, since: datetime, until: datetime) -> Sequence[ReportedDeploy]:
        """Give the deploys between two times."""
        return [deploy for deploy in self.reported if since <= deploy.at < until]

    def _between(self, since: datetime, until: datetime) -> Iterable[DrawnRun]:
        return (run for run in self.runs if since <= run.at < until)


def detect(runs: Iterable[DrawnRun]) -> Onsets:
    """Give since when series degrade: the detectors of the product, fed by the minute."""
    minutes: dict[tuple[float, SeriesKey], list[int]] = defaultdict(lambda: [0, 0])
    for run in runs:
        if run.calls:
            counted = minutes[run.at.timestamp() // MINUTE * MINUTE, run.place.series]
            counted[0] += 1
            counted[1] += run.calls[0] is not None
    places = {who: place for place, who in enumerate(dict.fromkeys(who for _, who in minutes))}
    project = ProjectDetectors(len(places))
    for (at, who), (calls, failed) in sorted(minutes.items(), key=lambda one: one[0][0]):
        project.feed(places[who], at, calls, failed)
    fires = {who: project[place].fire for who, place in places.items()}
    return {
        who: SeriesOnset(*(datetime.fromtimestamp(at, UTC) for at in fire.onset))
        for who, fire in fires.items()
        if fire
    }


def failures_of(run: DrawnRun) -> Counter[str]:
    """Count a run's failing calls by kind."""
    found = Counter[str]()
    _count(run, found)
    return found


def _count(run: DrawnRun, found: Counter[str]) -> None:
    found.update(kind for kind in run.calls if kind)
    if run.has_unknown_tool:
        found["unknown_tool"] += 1


def version_of(place: Dimensions) -> Dimensions:
    """Give what is ours of a place."""
    return place._replace(provider=None, model=None, node="", environment=None)
