"""The rows of the Now page: every series with its standing, worst first."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from diagnostics.core.buckets import Bucket, merged
from diagnostics.core.charts.mark import Tone
from diagnostics.core.charts.scale import RateScale, scale_for
from diagnostics.core.selection import Selection
from diagnostics.core.standing import (
    ORDER,
    Axis,
    Curve,
    Standing,
    Subject,
)
from diagnostics.core.verdict.cells import Who
from diagnostics.core.wording import shorten
from diagnostics.queries.events import SeriesRow
from diagnostics.queries.trends import SeriesKey
from diagnostics.verdicts.judging import Verdict, since_of
from diagnostics.views.model_links import model_url

BARS = 48
LONGEST_NAME = 40
ENVIRONMENT = "no environment"
AXIS_WIDTH = 190
LOWEST_TOP, HIGHEST_TOP = 0.2, 0.6
TONES: dict[Standing, Tone] = {
    Standing.DEGRADING: "bad",
    Standing.WATCH: "warn",
    Standing.RAISED: "quiet",
    Standing.OK: "good",
    Standing.FEW_RUNS: "quiet",
    Standing.NO_RUNS: "quiet",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A series as a row of the table; `since` is the verdict's, where it is hit by it."""

    row: SeriesRow
    subject: Subject
    buckets: Sequence[Bucket]
    selection: Selection
    since: datetime | None
    hot_from: int | None

    @property
    def url(self) -> str:
        """The address of the model's page, narrowed to the series; few lines are shown."""
        row = self.row
        query = self.selection.narrowed_to(environment=row.environment, node=row.node)
        return model_url(row.provider, row.model, query)

    @property
    def bars(self) -> Sequence[Bucket]:
        """The curve as it is drawn."""
        return merged(self.buckets, _together(len(self.buckets)))

    @property
    def tone(self) -> Tone:
        """The tone of the standing."""
        return TONES[self.subject.standing]

    @property
    def difference(self) -> float | None:
        """Rate less baseline."""
        rate, baseline = self.row.rates.degraded_rate, self.row.rates.baseline
        return None if rate is None or baseline is None else rate - baseline

    @property
    def has_interval(self) -> bool:
        """Whether there are runs enough to draw the rate with its interval."""
        return self.subject.standing not in {Standing.FEW_RUNS, Standing.NO_RUNS}

    @property
    def retry_seconds(self) -> float:
        """Time spent on calls beyond the first of a run."""
        return self.row.counts.retry_milliseconds / 1000


def lines_of(
    rows: Sequence[SeriesRow],
    curves: Mapping[SeriesKey, Sequence[Bucket]],
    found: Mapping[SeriesKey, Counter[str]],
    selection: Selection,
    axis: Axis,
    verdict: Verdict,
) -> list[Line]:
    """Prepare the rows, worst first: the reading's order, by standing."""
    nothing = [Bucket(0, 0)] * axis.count
    lines = [
        _line(row, curves.get(_key(row), nothing), found, selection, axis, verdict) for row in rows
    ]
    return sorted(lines, key=_place)


def _line(
    row: SeriesRow,
    buckets: Sequence[Bucket],
    found: Mapping[SeriesKey, Counter[str]],
    selection: Selection,
    axis: Axis,
    verdict: Verdict,
) -> Line:
    curve = Curve(axis.since, axis.width, buckets)
    subject = Subject(
        name=f"{_named(row.provider)}/{_named(row.model)}",
        place=f"{row.node.replace('_', ' ')} in {_named(row.environment, ENVIRONMENT)}",
        counts=row.counts,
        kinds=found.get(_key(row), Counter()),
        curve=curve,
    )
    since = since_of(_key(row), subject, verdict)
    return Line(
        row,
        subject,
        buckets,
        selection,
        since,
        axis.bar_of(since, _bars(axis.count)) if since else None,
    )


def _together(buckets: int) -> int:
    """Give how many buckets make a bar."""
    return -(-buckets // BARS)


def _bars(buckets: int) -> int:
    return -(-buckets // _together(buckets))


def is_hit(row: SeriesRow, verdict: Verdict) -> bool:
    """Ask whether the verdict is about a series."""
    return Who(*_key(row)) in verdict.touched


def scale_of(lines: Sequence[Line]) -> RateScale:
    """Give the one axis of all rates of the table."""
    drawn = (line.row.rates for line in lines if line.has_interval)
    return scale_for((rates.degraded_high or 0.0 for rates in drawn), AXIS_WIDTH)


def trend_top(lines: Sequence[Line]) -> float:
    """Give the one height of all curves of the table, so that they can be compared."""
    drawn = (line.bars for line in lines if line.has_interval)
    highest = max((bucket.share for bars in drawn for bucket in bars), default=0.0)
    return min(max(highest, LOWEST_TOP), HIGHEST_TOP)


def _key(row: SeriesRow) -> SeriesKey:
    return SeriesKey(row.environment, row.node, row.provider, row.model)


def _place(line: Line) -> tuple[int, int]:
    """By standing; where runs are too few to tell, the latest activity comes first."""
    if line.has_interval:
        return ORDER[line.subject.standing], 0
    active = [place for place, bucket in enumerate(line.buckets) if bucket.runs]
    # As it is drawn: neighbours that share a bar are equally late.
    latest = max(active, default=0) // _together(len(line.buckets))
    return ORDER[line.subject.standing], -latest


def _named(value: str | None, otherwise: str = "unknown") -> str:
    return shorten(value, LONGEST_NAME) if value else otherwise
