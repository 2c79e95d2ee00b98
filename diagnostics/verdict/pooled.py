"""What is worse though no series shows it alone: evidence pooled over all of them.

A release, a source or a region may have a few calls of each of many series. From each of some
beginnings on, the posterior over subsets says how much likelier the counts are if one of them got
worse. What is sure enough is suspected, unless its latest calls are well.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain, pairwise
from math import log, log1p

from diagnostics.analysis.detectors.onset import Background, CountedStretch, find_onset
from diagnostics.analysis.series import SeriesKey, SeriesOnset
from diagnostics.store.windows import WIDTHS, Grain, floor
from diagnostics.verdict.cells import CountCell, Dimensions, without_failure_only
from diagnostics.verdict.counted import CellCounts, count_kinds, wellness
from diagnostics.verdict.curves import Curves, Stretch, noise_before
from diagnostics.verdict.explainer import Explanation, posterior_of
from diagnostics.verdict.hypotheses import Timing
from diagnostics.verdict.rates import CellBaseline

HOUR, DAY, WEEK = WIDTHS[Grain.HOUR], WIDTHS[Grain.DAY], timedelta(days=7)
REACHES = tuple(timedelta(hours=hours) for hours in (0, 1, 3, 8, 24))
"""How long before the hour that runs it may have begun."""
WORTH_EXPLAINING = 6.0
"""How much likelier (log) failures must be from a beginning on."""
LEAST_SHARE, MOST_SHARE = 0.03, 0.9
PER_NEW = log(200)
"""The evidence (log odds) that one in 200 healthy new values reaches. What is new has one possible
onset, its first call; anything else could begin at any time and needs more."""
FALSE_PER = 30 * WEEK
"""Of each reach, one suspicion in so long is false: a long stretch has few chances to be."""
UNSURE = log(20)
"""The evidence from which calls are not said to be as usual."""
OVER = 3.0
"""How much likelier (log) the latest calls are as usual where it has ended."""
SURELY_NO_MORE = 5.0
"""How unlikely (log) it must be that all latest calls of a source were without a version."""
HIGHEST_PART = 0.95
"""The largest share of a source's calls that a version is assumed to have."""
USUAL_ERROR, LEAST_NOISE = 0.3, 0.02
"""The standard error of the logarithm of a usual rate, and the squared variation of an hour."""
SURE = 1 - 1e-12
"""The highest probability of anything."""

CellsBetween = Callable[[datetime, datetime], Sequence[CountCell]]
CurvesIn = Callable[[Stretch, frozenset[SeriesKey] | None], Curves]
"""Curves of the slots of a stretch, of series (None: all)."""
Value = tuple[int, str | None] | None
"""A dimension by its place, and its value; None stands for all calls."""
Sums = Counter[tuple[Value, str]]
CALLS = "calls"


@dataclass(frozen=True, slots=True)
class PooledSuspicion:
    """What got worse since about a time, and how sure that is (log)."""

    begin: datetime
    evidence: float
    answer: Explanation
    counted: CellCounts
    is_first: bool
    """Whether it was never called before."""
    until: datetime

    @property
    def is_sure(self) -> bool:
        """Whether so much is rarely false, of so long a stretch or of what is new."""
        chances = FALSE_PER / max(self.until - self.begin, HOUR)
        return self.evidence >= (PER_NEW if self.is_first else log(chances))

    def touched(self) -> frozenset[SeriesKey]:
        return frozenset(self.counted.cells[index].place.series for index in self.answer.cells)

    def is_over(self, hit: Sequence[CountCell], latest: Sequence[CountCell]) -> bool:
        """Whether its latest calls are well beside those before, or there are none any more."""
        touches, kinds = self.answer.subsets[0].touches, self.answer.kinds
        before, now = ([cell for cell in some if touches(cell.place)] for some in (hit, latest))
        calls, failed, expected = count_kinds(self.counted, kinds, before)
        share = min(max((failed - expected) / max(calls, 1), LEAST_SHARE), MOST_SHARE)
        is_well = wellness(self.counted, kinds, share, now) >= OVER
        return is_well or is_called_no_more(touches, hit, latest)


def onset_of_kinds(
    kinds: tuple[str, ...],
    touched: Collection[SeriesKey],
    baseline: CellBaseline,
    curves: Curves,
    stretch: Stretch,
    noise: float,
) -> SeriesOnset:
    """Return since when some kinds of failure are more frequent in some series.

    `noise` is the squared variation of the rate of an hour.
    """
    rates = {
        series: baseline.rate(Dimensions(**series._asdict()), kinds).mean for series in touched
    }
    stretches, usual = list[CountedStretch](), list[float]()
    for slot in range(stretch.count):
        called = {series: curves[series].calls[slot] for series in touched}
        if not (calls := sum(called.values())):
            continue
        rows = (curves[series].failed.get(kind) for series in touched for kind in kinds)
        failed = min(sum(row[slot] for row in rows if row), calls)
        begin, end = stretch.begin(slot), stretch.end(slot)
        seconds = (end - begin).total_seconds()
        stretches.append(CountedStretch(begin.timestamp(), seconds, calls, failed))
        usual.append(sum(rates[series] * count for series, count in called.items()) / calls)
    noises = [(max(noise, LEAST_NOISE), 0.0)]
    onset = find_onset(stretches, Background(usual, USUAL_ERROR, 0.0, noises))
    return SeriesOnset(*(datetime.fromtimestamp(at, UTC) for at in onset))


def suspect(
    cells: CellsBetween, curves_in: CurvesIn, stretch: Stretch, after: datetime | None = None
) -> tuple[Mapping[SeriesKey, SeriesOnset], bool]:
    """Return since when series are touched by what is sure, and lasts; and whether all are well.

    Until `after` the detector of a series said that it got worse; then that it is well again.
    """
    until, hours = stretch.window.until, stretch.in_hours
    curves = curves_in(hours, None)
    if not curves:
        return {}, True
    begins = _begins(until)
    bounds = [past_of(stretch)[0], *reversed(begins), until]
    parts = without_failure_only(*(cells(begin, end) for begin, end in pairwise(bounds)))[::-1]
    sums = [_sums(tuple(part)) for part in parts]
    strengths = (
        (_strength(sum(sums[:place], Counter()), sum(sums[place:], Counter())), place)
        for place, begin in enumerate(begins, 1)
        if after is None or begin >= after
    )
    strength, place = max(strengths, default=(0.0, 1))
    since, before = list(chain(*parts[:place])), list(chain(*parts[place:]))
    best = None
    if strength >= WORTH_EXPLAINING:
        best = _explain(cells, begins[place - 1], since, before, curves, hours)
    if best is None or not best.is_sure:
        return {}, best is None or best.evidence < UNSURE
    slots, noise = curves_in(stretch, best.touched()), noise_before(curves, hours, best.begin)
    touched, kinds = best.touched().intersection(curves, slots), best.answer.kinds
    if not touched:
        return {}, False
    onset = onset_of_kinds(kinds, touched, best.counted.baseline, slots, stretch, noise)
    latest = list[CountCell]()
    for begin, part in zip(begins, parts, strict=False):
        latest += part
        if begin <= onset.at:
            break
        if best.is_over(cells(floor(onset.at, HOUR), begin), latest):
            return {}, True
    return dict.fromkeys(touched, onset), False


def _begins(until: datetime) -> list[datetime]:
    hour = floor(until - timedelta.resolution, HOUR)
    return [hour - reach for reach in REACHES]


def past_of(stretch: Stretch) -> tuple[datetime, datetime]:
    """Return from when to when calls were made that tell what is usual."""
    begin = _begins(stretch.window.until)[-1]
    return begin - WEEK, begin


def is_called_no_more(
    touches: Callable[[Dimensions], bool], cells: Sequence[CountCell], latest: Sequence[CountCell]
) -> bool:
    """Whether sources kept calling without what is touched, and surely not by chance."""
    sources = {cell.place.source for cell in cells if touches(cell.place)}
    if not sources or any(touches(cell.place) for cell in latest):
        return False
    calls = sum(cell.attempts for cell in cells if cell.place.source in sources)
    share = sum(cell.attempts for cell in cells if touches(cell.place)) / calls
    made = sum(cell.attempts for cell in latest if cell.place.source in sources)
    return made * -log(1 - min(share, HIGHEST_PART)) >= SURELY_NO_MORE


def _explain(
    cells: CellsBetween,
    begin: datetime,
    since: Sequence[CountCell],
    before: Sequence[CountCell],
    curves: Curves,
    stretch: Stretch,
) -> PooledSuspicion | None:
    """Return the best explanation, and how sure it is that something got worse."""
    hours = max((stretch.window.until - begin) / HOUR, 1.0)
    noise = noise_before(curves, stretch, begin) / hours
    counted = CellCounts.of(since, before, Timing(day=cells(begin - DAY, begin)), noise)
    posterior = posterior_of(counted)
    if not posterior.answers:
        return None
    evidence = log1p(-min(posterior.nothing, SURE)) - log(max(posterior.nothing, 1 - SURE))
    best = posterior.answers[0]
    is_first = not any(best.subsets[0].touches(cell.place) for cell in before)
    return PooledSuspicion(begin, evidence, best, counted, is_first, stretch.window.until)


def _strength(since: Sums, before: Sums) -> float:
    """Return how much likelier (log) failures are at their rate than at that of before.

    That is the most of any value of any dimension, and of any kind of failure or all; 0 with
    fewer calls before than since.
    """
    strongest = 0.0
    if before[None, CALLS] >= since[None, CALLS]:
        for (value, kind), count in since.items():
            calls = since[value, CALLS]
            known = value if before[value, CALLS] >= calls else None
            usual = calls * (before[known, kind] + 0.5) / (before[known, CALLS] + 1)
            if count > usual and kind != CALLS:
                strongest = max(strongest, count * log(count / usual) - (count - usual))
    return strongest


@lru_cache(maxsize=8)  # The hours that are over stay the same until the next one is.
def _sums(cells: tuple[CountCell, ...]) -> Sums:
    """Return the calls with each value, and their failures by kind and in all."""
    sums = defaultdict[Value, Counter[str]](Counter)
    for cell in cells:
        counts = {CALLS: cell.attempts, "failed": cell.failed, **cell.failures}
        for value in (None, *enumerate(cell.place)):
            of_value = sums[value]
            for kind, count in counts.items():
                of_value[kind] += count
    return Sums({(value, kind): n for value, counts in sums.items() for kind, n in counts.items()})
