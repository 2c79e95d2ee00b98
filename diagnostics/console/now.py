"""The Now page: which model degrades, since when, how badly, and what to change."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from diagnostics import clock
from diagnostics.alerting.marks import marks_between
from diagnostics.analysis.series import (
    Rates,
    RunCounts,
    SeriesKey,
    StatusAxis,
    axis_of,
    rate_series,
)
from diagnostics.analysis.statistics import LEAST_TRIALS
from diagnostics.analysis.status import SeriesState, SeriesStatus
from diagnostics.console.now_verdict import panel
from diagnostics.failures.counts import GroupQuestion
from diagnostics.failures.groups import GroupRow, groups_of
from diagnostics.failures.wording import STATES, title_of
from diagnostics.figures import listed, plural, shorten
from diagnostics.queries.call_counts import kind_filter
from diagnostics.queries.events import covered_by, window_of
from diagnostics.queries.matrix import LONGEST_NAME, name_of
from diagnostics.queries.trends import kinds, latest_degraded
from diagnostics.selection.selection import ROLLUP_FIELDS, Selection
from diagnostics.store.windows import RunBucket, TimeWindow, merged
from diagnostics.verdict.statuses import counts_between, curves_between, read_status
from diagnostics.verdict.wording import state_words
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
SERIES_TONES: dict[SeriesState, Tone] = {
    SeriesState.DEGRADING: "bad",
    SeriesState.WATCH: "warn",
    SeriesState.OK: "good",
    SeriesState.LOW_VOLUME: "quiet",
    SeriesState.NO_DATA: "quiet",
}


@dataclass(frozen=True, slots=True)
class NowRow:
    """A series as a row of the table: how it stands, and what its range counted."""

    status: SeriesStatus
    counts: RunCounts
    buckets: Sequence[RunBucket]
    selection: Selection
    hot_from: int | None

    @property
    def key(self) -> SeriesKey:
        """What the series is told apart by."""
        return self.status.key

    @property
    def name(self) -> str:
        """The provider and the model."""
        return name_of(self.key.provider, self.key.model)

    @property
    def place(self) -> str:
        """The node and the environment."""
        environment = shorten(self.key.environment or ENVIRONMENT, LONGEST_NAME)
        return f"{(self.key.node or '').replace('_', ' ')} in {environment}"

    @property
    def rates(self) -> Rates:
        """The rates of the range."""
        return rate_series(self.counts if self.status.has_rate else RunCounts())

    @property
    def url(self) -> str:
        """The address of the model's page, narrowed to the series; few lines are shown."""
        key = self.key
        query = self.selection.query_for(environment=key.environment, node=key.node)
        return model_url(key.provider, key.model, query)

    @property
    def bars(self) -> Sequence[RunBucket]:
        """The curve as it is drawn."""
        return merged(self.buckets, _together(len(self.buckets)))

    @property
    def tone(self) -> Tone:
        """The tone of the state."""
        return SERIES_TONES[self.status.state]

    @property
    def state(self) -> str:
        """The state in words."""
        return state_words(self.status.state, self.status.unit)

    @property
    def difference(self) -> float | None:
        """Rate less baseline."""
        rate, baseline = self.rates.degraded_rate, self.status.baseline
        return None if rate is None or baseline is None else rate - baseline

    @property
    def has_interval(self) -> bool:
        """Whether there are runs enough to draw the rate with its interval."""
        return self.counts.runs >= LEAST_TRIALS and self.rates.degraded_rate is not None

    @property
    def retry_seconds(self) -> float:
        """Time spent on calls beyond the first of a run."""
        return self.counts.retry_milliseconds / 1000


def lines_of(
    statuses: Iterable[SeriesStatus],
    counts: Mapping[SeriesKey, RunCounts],
    curves: Mapping[SeriesKey, Sequence[RunBucket]],
    selection: Selection,
    axis: StatusAxis,
) -> list[NowRow]:
    """Prepare the rows, worst first."""
    nothing = [RunBucket(0, 0)] * axis.count
    lines = [
        NowRow(
            status,
            counts.get(status.key, RunCounts()),
            curves.get(status.key, nothing),
            selection,
            axis.bar_of(status.since, _bars(axis.count)) if status.since else None,
        )
        for status in statuses
    ]
    return sorted(lines, key=_place)


def _together(buckets: int) -> int:
    """Return how many buckets make a bar."""
    return -(-buckets // BARS)


def _bars(buckets: int) -> int:
    return -(-buckets // _together(buckets))


def scale_of(lines: Sequence[NowRow]) -> Scale:
    """Return the one axis of all rates of the table."""
    drawn = (line.rates for line in lines if line.has_interval)
    return rate_scale((rates.degraded_high or 0.0 for rates in drawn), AXIS_WIDTH)


def trend_top(lines: Sequence[NowRow]) -> float:
    """Return the one height of all curves of the table, so that they can be compared."""
    drawn = (line.bars for line in lines if line.has_interval)
    highest = max((bucket.share for bars in drawn for bucket in bars), default=0.0)
    return min(max(highest, LOWEST_TOP), HIGHEST_TOP)


def _place(line: NowRow) -> tuple[int, float]:
    """By state; where runs are too few to tell, the latest activity comes first."""
    place, low = line.status.rank
    if line.status.is_judged:
        return place, low
    active = [at for at, bucket in enumerate(line.buckets) if bucket.runs]
    # As it is drawn: neighbours that share a bar are equally late.
    return place, -(max(active, default=0) // _together(len(line.buckets)))


NAMED_BESIDE = 3
TONES: dict[str, Tone] = {"degrading": "bad", "ok": "good", "not_enough_data": "quiet"}


def tone_of(state: str, lines: Sequence[NowRow]) -> Tone:
    """Return the tone of a verdict; all is well only if no series is to be watched."""
    tone = TONES[state]
    watched = (SeriesState.DEGRADING, SeriesState.WATCH)
    is_watched = any(line.status.state in watched for line in lines)
    return "warn" if tone == "good" and is_watched else tone


def beside(lines: Sequence[NowRow], hit: Sequence[NowRow]) -> str:
    """Name the series that the verdict is not about, by how they stand."""
    others = [line for line in lines if line not in hit]
    by_state = {
        state: [line for line in others if line.status.state is state] for state in SeriesState
    }
    bad, watched = by_state[SeriesState.DEGRADING], by_state[SeriesState.WATCH]
    calm, few = by_state[SeriesState.OK], by_state[SeriesState.LOW_VOLUME]
    told = [f"Affected: {_places(hit)}."] if hit else []
    told += [f"{'Also degrading' if hit else 'Degrading'}: {_names(bad)}."] if bad else []
    told += [f"To watch: {_names(watched)}."] if watched else []
    told += [f"{plural(len(calm), 'series', 'series')} within baseline."] if calm else []
    told += [f"{len(few)} with fewer than {LEAST_TRIALS} runs."] if few else []
    return " ".join(told)


def _places(lines: Sequence[NowRow]) -> str:
    return listed(list(dict.fromkeys(line.place for line in lines)), NAMED_BESIDE)


def _names(lines: Sequence[NowRow]) -> str:
    return listed([f"{line.name} ({line.place})" for line in lines], NAMED_BESIDE)


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
    now = clock.now()
    context = now_context(request.project.pk, selection, now)
    frame = filter_frame(
        request, selection, applies=ROLLUP_FIELDS, covers=covered_by(selection, now)
    )
    shown = {"section": "now", **frame}
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
    window = window_of(selection, now)
    judged = read_status(project_id, selection, now)
    curves = curves_between(project_id, axis, versions, now, judged)
    counts = counts_between(project_id, selection, now, judged)
    found = _kept(kinds(project_id, window, versions), selection)
    verdict = judged.verdict
    lines = lines_of(judged.kept_by(selection, counts), counts, curves, selection, axis)
    marks = marks_between(project_id, axis.since, axis.until, selection.terms)[-MOST_TICKS:]
    called = [line for line in lines if line.counts.runs]
    hit = [line for line in lines if line.key in verdict.touched and line.tone != "good"]
    return {
        "verdict": verdict,
        "tone": tone_of(verdict.state, called),
        "beside": beside(called, hit),
        **panel(project_id, selection, verdict, now),
        "lines": lines[:ROWS],
        "left_out": max(len(lines) - ROWS, 0),
        "scale": scale_of(lines[:ROWS]),
        "trend_top": trend_top(lines[:ROWS]),
        "trend_span": axis.span,
        "trend_hours": round(axis.span.total_seconds() / 3600),
        "ticks": [share_of(mark.at, axis.since, axis.until) for mark in marks],
        "kinds": _top_kinds(found, selection),
        "fresh": _fresh(project_id, selection, window),
        "latest": latest_degraded(project_id, selection, until, LATEST),
        "is_empty": not lines and not curves and not selection.terms,
        "checked": judged.at,
        "selection": selection,
    }


def _kept(
    found: Mapping[SeriesKey, Counter[str]], selection: Selection
) -> Mapping[SeriesKey, Counter[str]]:
    return {k: v for k, v in found.items() if selection.keeps(k._asdict())}


def _fresh(
    project_id: int, selection: Selection, window: TimeWindow
) -> Sequence[tuple[GroupRow, str, Tone]]:
    """Return the groups that are new or came back, with their titles and tones."""
    terms = selection.rollup_terms
    hours = window.in_hours
    asked = GroupQuestion(hours.since, hours.until, terms, states=("new", "regressed"))
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
