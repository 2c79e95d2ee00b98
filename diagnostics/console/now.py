"""The Now page: which model degrades, since when, how badly, and what to change."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from diagnostics import clock
from diagnostics.analysis.series import (
    MINIMUM_RUNS,
    ORDER,
    RatedSeries,
    RunCurve,
    SeriesKey,
    SeriesStatus,
    StatusAxis,
    axis_of,
)
from diagnostics.console.marks import marks_between
from diagnostics.console.now_verdict import panel
from diagnostics.failures.counts import GroupQuestion
from diagnostics.failures.groups import GroupRow, groups_of
from diagnostics.failures.wording import STATES, title_of
from diagnostics.figures import listed, plural, shorten
from diagnostics.queries.call_counts import kind_filter
from diagnostics.queries.events import SeriesRow, series_rows
from diagnostics.queries.matrix import LONGEST_NAME, name_of
from diagnostics.queries.trends import kinds, latest_degraded, recent_trends
from diagnostics.selection.selection import Selection
from diagnostics.store.windows import RunBucket, merged
from diagnostics.verdict.verdicts import Verdict, kept_verdict_of, since_of
from diagnostics.web.access import ConsoleRequest, member_view
from diagnostics.web.charts.marks import Tone
from diagnostics.web.charts.scales import Scale, rate_scale, share_of
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.model_links import model_url
from diagnostics.web.pages import respond

BARS = 48
ENVIRONMENT = "no environment"
AXIS_WIDTH = 190
LOWEST_TOP, HIGHEST_TOP = 0.2, 0.6
SERIES_TONES: dict[SeriesStatus, Tone] = {
    SeriesStatus.DEGRADING: "bad",
    SeriesStatus.WATCH: "warn",
    SeriesStatus.RAISED: "quiet",
    SeriesStatus.OK: "good",
    SeriesStatus.FEW_RUNS: "quiet",
    SeriesStatus.NO_RUNS: "quiet",
}


@dataclass(frozen=True, slots=True)
class NowRow:
    """A series as a row of the table; `since` is the verdict's, where it is hit by it."""

    row: SeriesRow
    subject: RatedSeries
    buckets: Sequence[RunBucket]
    selection: Selection
    since: datetime | None
    hot_from: int | None

    @property
    def url(self) -> str:
        """The address of the model's page, narrowed to the series; few lines are shown."""
        row = self.row
        query = self.selection.query_for(environment=row.environment, node=row.node)
        return model_url(row.provider, row.model, query)

    @property
    def bars(self) -> Sequence[RunBucket]:
        """The curve as it is drawn."""
        return merged(self.buckets, _together(len(self.buckets)))

    @property
    def tone(self) -> Tone:
        """The tone of the standing."""
        return SERIES_TONES[self.subject.standing]

    @property
    def difference(self) -> float | None:
        """Rate less baseline."""
        rate, baseline = self.row.rates.degraded_rate, self.row.rates.baseline
        return None if rate is None or baseline is None else rate - baseline

    @property
    def has_interval(self) -> bool:
        """Whether there are runs enough to draw the rate with its interval."""
        return self.subject.standing not in {SeriesStatus.FEW_RUNS, SeriesStatus.NO_RUNS}

    @property
    def retry_seconds(self) -> float:
        """Time spent on calls beyond the first of a run."""
        return self.row.counts.retry_milliseconds / 1000


def lines_of(
    rows: Sequence[SeriesRow],
    curves: Mapping[SeriesKey, Sequence[RunBucket]],
    found: Mapping[SeriesKey, Counter[str]],
    selection: Selection,
    axis: StatusAxis,
    verdict: Verdict,
) -> list[NowRow]:
    """Prepare the rows, worst first: the reading's order, by standing."""
    nothing = [RunBucket(0, 0)] * axis.count
    lines = [
        _line(row, curves.get(row.key, nothing), found, selection, axis, verdict) for row in rows
    ]
    return sorted(lines, key=_place)


def _line(
    row: SeriesRow,
    buckets: Sequence[RunBucket],
    found: Mapping[SeriesKey, Counter[str]],
    selection: Selection,
    axis: StatusAxis,
    verdict: Verdict,
) -> NowRow:
    curve = RunCurve(axis.since, axis.width, buckets)
    environment = shorten(row.environment or ENVIRONMENT, LONGEST_NAME)
    subject = RatedSeries(
        name=name_of(row.provider, row.model),
        place=f"{row.node.replace('_', ' ')} in {environment}",
        counts=row.counts,
        kinds=found.get(row.key, Counter()),
        curve=curve,
    )
    since = since_of(row.key, subject, verdict)
    return NowRow(
        row,
        subject,
        buckets,
        selection,
        since,
        axis.bar_of(since, _bars(axis.count)) if since else None,
    )


def _together(buckets: int) -> int:
    """Return how many buckets make a bar."""
    return -(-buckets // BARS)


def _bars(buckets: int) -> int:
    return -(-buckets // _together(buckets))


def is_hit(row: SeriesRow, verdict: Verdict) -> bool:
    """Whether the verdict is about a series."""
    return row.key in verdict.touched


def scale_of(lines: Sequence[NowRow]) -> Scale:
    """Return the one axis of all rates of the table."""
    drawn = (line.row.rates for line in lines if line.has_interval)
    return rate_scale((rates.degraded_high or 0.0 for rates in drawn), AXIS_WIDTH)


def trend_top(lines: Sequence[NowRow]) -> float:
    """Return the one height of all curves of the table, so that they can be compared."""
    drawn = (line.bars for line in lines if line.has_interval)
    highest = max((bucket.share for bars in drawn for bucket in bars), default=0.0)
    return min(max(highest, LOWEST_TOP), HIGHEST_TOP)


def _place(line: NowRow) -> tuple[int, int]:
    """By standing; where runs are too few to tell, the latest activity comes first."""
    if line.has_interval:
        return ORDER[line.subject.standing], 0
    active = [place for place, bucket in enumerate(line.buckets) if bucket.runs]
    # As it is drawn: neighbours that share a bar are equally late.
    latest = max(active, default=0) // _together(len(line.buckets))
    return ORDER[line.subject.standing], -latest


NAMED_BESIDE = 3
TONES: dict[str, Tone] = {"degrading": "bad", "ok": "good", "not_enough_data": "quiet"}


def tone_of(state: str, subjects: Sequence[RatedSeries]) -> Tone:
    """Return the tone of a verdict; all is well only if no series is to be watched."""
    tone = TONES[state]
    is_watched = any(s.standing in (SeriesStatus.DEGRADING, SeriesStatus.WATCH) for s in subjects)
    return "warn" if tone == "good" and is_watched else tone


def beside(subjects: Sequence[RatedSeries], hit: Sequence[RatedSeries]) -> str:
    """Name the series that the verdict is not about, by how they stand."""
    others = [subject for subject in subjects if subject not in hit]
    bad = [one for one in others if one.standing is SeriesStatus.DEGRADING]
    watched = [one for one in others if one.standing is SeriesStatus.WATCH]
    raised = [one for one in others if one.standing is SeriesStatus.RAISED]
    told = [f"Affected: {_places(hit)}."] if hit else []
    told += [f"{'Also degrading' if hit else 'Degrading'}: {_names(bad)}."] if bad else []
    told += [f"To watch: {_names(watched)}."] if watched else []
    told += [f"Above usual: {_names(raised)}."] if raised else []
    count = Counter(subject.standing for subject in others)
    calm, few = count[SeriesStatus.OK], count[SeriesStatus.FEW_RUNS]
    told += [f"{plural(calm, 'series', 'series')} within baseline."] if calm else []
    told += [f"{few} with fewer than {MINIMUM_RUNS} runs."] if few else []
    return " ".join(told)


def _places(subjects: Sequence[RatedSeries]) -> str:
    places = list(dict.fromkeys(subject.place for subject in subjects))
    return listed(places, NAMED_BESIDE)


def _names(subjects: Sequence[RatedSeries]) -> str:
    return listed([f"{subject.name} ({subject.place})" for subject in subjects], NAMED_BESIDE)


ROWS = 20
LATEST = 10
FRESH = 5
TOP_KINDS = 6
MOST_TICKS = 12


@require_safe
@member_view
def now(request: ConsoleRequest) -> HttpResponse:
    """Show the sentence, the series worst first, the latest ends and the kinds."""
    selection = read_filters(request)
    context = now_context(request.project.pk, selection, clock.now())
    shown = {"section": "now", **filter_frame(request, selection)}
    return respond(
        request,
        "console/now",
        {**context, **shown},
        f"{context['told'].lead}{context['told'].rest}",
    )


def now_context(project_id: int, selection: Selection, now: datetime) -> Mapping[str, Any]:
    """Read everything the Now page shows; the number of queries does not grow."""
    since, until = selection.window(now)
    axis = axis_of(since, until)
    versions = selection.version_terms
    curves = recent_trends(project_id, axis.since, axis.until, axis.count, versions, now)
    asked = selection.rollup_terms
    rows = series_rows(project_id, since, until, terms=asked)
    found = _kept(kinds(project_id, since, until, versions), selection)
    judged, verdict = kept_verdict_of(project_id, selection, now)
    lines = lines_of(rows, curves, found, selection, axis, verdict)
    marks = marks_between(project_id, axis.since, axis.until, selection.terms)[-MOST_TICKS:]
    subjects = [line.subject for line in lines if line.subject.runs]
    hit = [ln.subject for ln in lines if is_hit(ln.row, verdict) and ln.tone != "good"]
    return {
        "verdict": verdict,
        "tone": tone_of(verdict.state, subjects),
        "beside": beside(subjects, hit),
        **panel(project_id, selection, verdict, now),
        "lines": lines[:ROWS],
        "left_out": max(len(lines) - ROWS, 0),
        "scale": scale_of(lines[:ROWS]),
        "trend_top": trend_top(lines[:ROWS]),
        "trend_span": axis.span,
        "trend_hours": round(axis.span.total_seconds() / 3600),
        "ticks": [share_of(mark.at, axis.since, axis.until) for mark in marks],
        "kinds": _top_kinds(found, selection),
        "fresh": _fresh(project_id, selection, since, until),
        "latest": latest_degraded(project_id, selection, until, LATEST),
        "is_empty": not rows and not curves and not selection.terms,
        "checked": judged,
        "selection": selection,
    }


def _kept(
    found: Mapping[SeriesKey, Counter[str]], selection: Selection
) -> Mapping[SeriesKey, Counter[str]]:
    return {k: v for k, v in found.items() if selection.keeps(k._asdict())}


def _fresh(
    project_id: int, selection: Selection, since: datetime, until: datetime
) -> Sequence[tuple[GroupRow, str, Tone]]:
    """Return the groups that are new or came back, with their titles and tones."""
    terms = selection.rollup_terms
    asked = GroupQuestion(since, until, terms, states=("new", "regressed"))
    rows, _ = groups_of(project_id, asked, FRESH)
    return [
        (
            row,
            title_of(row.group.kind, row.group.error_type, row.group.pointer, row.group.detail),
            STATES[row.group.state],
        )
        for row in rows
    ]


def _top_kinds(
    found: Mapping[SeriesKey, Counter[str]], selection: Selection
) -> Sequence[Mapping[str, Any]]:
    total: Counter[str] = sum(found.values(), Counter())
    count = total.total()
    return [
        {
            "kind": kind,
            "seen": seen,
            "share": seen / count,
            "query": selection.query_for(kind=kind_filter(kind)),
        }
        for kind, seen in total.most_common(TOP_KINDS)
    ]
