"""The Now page: which model degrades, since when, how badly (S0-57)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from diagnostics import clock
from diagnostics.core.charts.mark import Tone
from diagnostics.core.charts.scale import RateScale, scale_for
from diagnostics.core.filter_fields import SERIES_FIELDS, UNKNOWN
from diagnostics.core.onset import Bucket, merged
from diagnostics.core.ranges import RANGES
from diagnostics.core.selection import Selection, read_selection
from diagnostics.core.standing import ORDER, Curve, Standing, Subject
from diagnostics.core.verdict_line import verdict_line
from diagnostics.core.wording import shorten
from diagnostics.reading import SeriesRow, series_rows
from diagnostics.trends import SeriesKey, kinds, latest_degraded, trends
from diagnostics.views.access import ConsoleRequest, member_view
from diagnostics.views.pages import respond

BUCKETS = 96
BARS = 48
ROWS = 24
LATEST = 10
LONGEST_NAME = 40
ENVIRONMENT = "no environment"
TOP_KINDS = 6
AXIS_WIDTH = 190
LOWEST_TOP, HIGHEST_TOP = 0.2, 0.6
NO_BUCKETS = [Bucket(0, 0)] * BUCKETS
TONES: dict[Standing, Tone] = {
    Standing.DEGRADING: "bad",
    Standing.WATCH: "warn",
    Standing.OK: "good",
    Standing.FEW_RUNS: "quiet",
    Standing.NO_RUNS: "quiet",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A series as a row of the table."""

    row: SeriesRow
    subject: Subject
    narrowed: str
    bars: Sequence[Bucket]

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
    def hot_from(self) -> int | None:
        """The first bar of the degradation that goes on now, if it is one."""
        begun = self.subject.onset
        if self.subject.standing is not Standing.DEGRADING or begun is None:
            return None
        return begun.index // (BUCKETS // BARS)

    @property
    def has_interval(self) -> bool:
        """Whether there are runs enough to draw the rate with its interval."""
        return self.subject.standing not in {Standing.FEW_RUNS, Standing.NO_RUNS}

    @property
    def retry_seconds(self) -> float:
        """Time spent on calls beyond the first of a run."""
        return self.row.counts.retry_milliseconds / 1000


@require_safe
@member_view
def now(request: ConsoleRequest) -> HttpResponse:
    """Show the sentence, the series worst first, the latest ends and the kinds."""
    selection = read_selection(request.GET.dict())
    context = now_context(request.project.pk, selection, clock.now())
    shown = {"section": "now", "base_url": request.build_absolute_uri("/").rstrip("/")}
    return respond(request, "console/now", {**context, **shown})


def now_context(
    project_id: int, selection: Selection, until: datetime
) -> Mapping[str, Any]:
    """Read everything the Now page shows; the number of queries does not grow."""
    since = selection.since(until)
    span = max(selection.span, timedelta(hours=24))
    trend_since = next_boundary(until, span / BUCKETS) - span
    versions = selection.version_terms
    curves = trends(project_id, trend_since, trend_since + span, BUCKETS, versions)
    asked = (*selection.series_terms, *versions)
    rows = series_rows(project_id, since, until, terms=asked)
    found = _kept(kinds(project_id, since, until, versions), selection)
    lines = _lines(rows, curves, found, selection, trend_since, span / BUCKETS)
    return {
        "worst": _worst(lines, selection),
        "verdict": verdict_line([ln.subject for ln in lines], selection.range_words),
        "lines": lines[:ROWS],
        "left_out": max(len(lines) - ROWS, 0),
        "scale": _scale(lines[:ROWS]),
        "trend_top": _trend_top(lines[:ROWS]),
        "trend_hours": round(span.total_seconds() / 3600),
        "kinds": _top_kinds(found),
        "latest": latest_degraded(project_id, selection, until, LATEST),
        "is_empty": not rows and not curves and not selection.filters,
        "checked": until,
        **_filter_context(selection, curves, rows),
    }


def next_boundary(at: datetime, width: timedelta) -> datetime:
    """Round a time up, so that a curve does not slide with every look at it."""
    epoch = datetime.fromtimestamp(0, at.tzinfo)
    return epoch + ((at - epoch) // width + 1) * width


def _key(row: SeriesRow) -> SeriesKey:
    return SeriesKey(row.environment, row.node, row.provider, row.model)


def _kept(
    found: Mapping[SeriesKey, Counter[str]], selection: Selection
) -> Mapping[SeriesKey, Counter[str]]:
    return {k: v for k, v in found.items() if selection.keeps(k._asdict())}


def _lines(
    rows: Sequence[SeriesRow],
    curves: Mapping[SeriesKey, Sequence[Bucket]],
    found: Mapping[SeriesKey, Counter[str]],
    selection: Selection,
    since: datetime,
    width: timedelta,
) -> list[Line]:
    """Prepare the rows, worst first: the reading's order, by standing."""
    lines = []
    for row in rows:
        buckets = curves.get(_key(row), NO_BUCKETS)
        curve = Curve(since, width, buckets)
        subject = _subject(row, curve, found.get(_key(row), Counter()))
        narrowed = selection.narrowed_to(**_key(row)._asdict())
        bars = merged(buckets, BUCKETS // BARS)
        lines.append(Line(row, subject, narrowed, bars))
    return sorted(lines, key=_place)


def _place(line: Line) -> tuple[int, int]:
    """By standing; where runs are too few to tell, the latest activity comes first."""
    active = [place for place, bucket in enumerate(line.bars) if bucket.runs]
    return ORDER[line.subject.standing], 0 if line.has_interval else -max(
        active, default=0
    )


def _subject(row: SeriesRow, curve: Curve, found: Counter[str]) -> Subject:
    return Subject(
        name=f"{_named(row.provider)}/{_named(row.model)}",
        place=f"{row.node.replace('_', ' ')} in {_named(row.environment, ENVIRONMENT)}",
        counts=row.counts,
        kinds=found,
        curve=curve,
    )


def _worst(lines: Sequence[Line], selection: Selection) -> Mapping[str, str] | None:
    """Lead to the model that degrades, unless the page shows nothing else already."""
    if not lines or lines[0].tone != "bad" or "model" in selection.filters:
        return None
    row = lines[0].row
    narrowed = selection.narrowed_to(provider=row.provider, model=row.model)
    return {"name": lines[0].subject.name, "query": narrowed}


def _named(value: str | None, otherwise: str = "unknown") -> str:
    return shorten(value, LONGEST_NAME) if value else otherwise


def _scale(lines: Sequence[Line]) -> RateScale:
    drawn = (line.row.rates for line in lines if line.has_interval)
    highs = (rates.degraded_high or 0.0 for rates in drawn)
    return scale_for(highs, AXIS_WIDTH)


def _trend_top(lines: Sequence[Line]) -> float:
    """One height for all curves of the table, so that they can be compared."""
    drawn = (line.bars for line in lines if line.has_interval)
    highest = max((bucket.share for bars in drawn for bucket in bars), default=0.0)
    return min(max(highest, LOWEST_TOP), HIGHEST_TOP)


def _top_kinds(found: Mapping[SeriesKey, Counter[str]]) -> Sequence[Mapping[str, Any]]:
    total: Counter[str] = sum(found.values(), Counter())
    count = total.total()
    return [
        {"kind": kind, "seen": seen, "share": seen / count}
        for kind, seen in total.most_common(TOP_KINDS)
    ]


def _filter_context(
    selection: Selection,
    curves: Mapping[SeriesKey, Sequence[Bucket]],
    rows: Sequence[SeriesRow],
) -> Mapping[str, Any]:
    known = {*curves, *(_key(row) for row in rows)}
    return {
        "selection": selection,
        "ranges": [(name, selection.query(range=name)) for name in RANGES],
        "chips": [
            (field, value, selection.query(**{field: None}))
            for field, value in selection.filters.items()
        ],
        "picks": [
            (field, _choices(known, field))
            for field in SERIES_FIELDS
            if field not in selection.filters
        ],
    }


def _choices(known: set[SeriesKey], field: str) -> Sequence[tuple[str, str]]:
    values = {getattr(key, field) for key in known}
    named = sorted(value for value in values if value is not None)
    unknown = [(UNKNOWN, "unknown")] if None in values else []
    return [*((value, value) for value in named), *unknown]
