"""GET /api/v1/verdict and GET /api/v1/series."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from pydantic import Field
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, project_of
from diagnostics.alerting.incident_records import judged_of
from diagnostics.alerting.statuses import (
    StatusQuestion,
    StatusSet,
    count_statuses,
    judged_ids,
    read_statuses,
    recent_verdict_of,
)
from diagnostics.analysis.series import (
    RunCounts,
    SeriesKey,
    SeriesState,
    SeriesStatus,
    Unit,
    rate_series,
)
from diagnostics.analysis.statistics import wilson_interval
from diagnostics.queries.call_counts import Side
from diagnostics.queries.runs import NOT_ASSESSED, worse_by_series
from diagnostics.queries.series import counts_by_series, covered_by, next_series, window_of
from diagnostics.rest.cursors import read_count_cursor, write_count_cursor
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import DEFAULT_LIMIT, PAGE_PARAMETERS, SERIES_PARAMETERS, select
from diagnostics.rest.resources import EXPORTS, Counted, CoversResource, Resource, describe_covers
from diagnostics.selection.fields import SERIES_FIELDS, VERSION_FIELDS
from diagnostics.selection.selection import ROLLUP_FIELDS, Selection
from diagnostics.verdict.advice import Advice
from diagnostics.verdict.cause import Cause
from diagnostics.verdict.verdicts import describe, judged_times

Share = Annotated[float, Field(json_schema_extra={"format": "double"})]
NO_CHANCE: Mapping[str, Any] = dict.fromkeys(("share", "low", "high"))
COUNTED: Mapping[Unit, Literal["runs", "calls"]] = {"run": "runs", "call": "calls"}


class SeriesItem(Resource):
    """A series in a window; shares are between 0 and 1."""

    provider: str | None
    model: str | None
    node: str
    environment: str | None
    state: SeriesState
    runs: int
    degraded: int
    degraded_rate: Share | None
    degraded_low: Share | None
    degraded_high: Share | None
    baseline: Share | None
    first_pass_rate: Share | None
    repair_success_rate: Share | None
    calls: Annotated[int, Field(description="attempts at this model, in runs that ended anywhere")]
    calls_failed: Annotated[int, Field(description="of these, without a usable answer")]
    calls_failed_rate: Share | None
    calls_failed_low: Share | None
    calls_failed_high: Share | None
    calls_baseline: Annotated[Share | None, Field(description="failed calls of the week before")]
    assessed: Annotated[int, Field(description="runs with a valid answer that was assessed later")]
    valid_but_worse: Annotated[int, Field(description="of these, as bad")]
    valid_but_worse_rate: Share | None
    valid_but_worse_low: Share | None
    valid_but_worse_high: Share | None
    retry_tokens: int
    retry_seconds: Share
    unaltered_rate: Annotated[
        Share | None, Field(description="first passes whose reading changed no value")
    ]
    unchecked: Annotated[int, Field(description="answers that nothing checked")]
    cancelled: Annotated[int, Field(description="by the caller: in none of the other counts")]
    counted: Annotated[Literal["runs", "calls"], Field(description="what `runs` counts")]
    judged_by: Annotated[
        Literal["runs", "calls"],
        Field(description="what `state` and `since` are of: calls where they are told"),
    ]
    since: datetime | None
    since_low: datetime | None
    since_high: datetime | None
    judged_at: Annotated[datetime, Field(description="the moment of state, since and baseline")]
    judged_anew_since: Annotated[
        datetime | None, Field(description="when another release's detector took over")
    ]


class ExcessShareResource(Resource):
    """How much of the excess one value of a dimension has, beside its share of calls."""

    dimension: str
    value: str
    share: Annotated[Share, Field(description="of the excess; may be below 0 or above 1")]
    traffic_share: Share
    lift: Annotated[Share | None, Field(description="share / traffic_share")]


class JudgedResource(Resource):
    """How many were judged by people, and how many of them in this way."""

    count: int
    total: int
    share: Share | None
    low: Annotated[Share | None, Field(description="of the 95 % interval")]
    high: Share | None


class JudgedResources(Resource):
    """What people said of the verdicts and alarms of the project in the last 90 days."""

    verdicts_right: Annotated[JudgedResource, Field(description="of the verdicts marked")]
    alarms_false: Annotated[JudgedResource, Field(description="of the incidents with a cause")]


class RiseResource(Resource):
    """The share of calls that fail, in the first third of a trouble and in its latest."""

    first: Share
    latest: Share


class OtherRateResource(Resource):
    """The rate in the other unit: of runs where a verdict counts calls, and the reverse."""

    counted: Literal["runs", "calls"]
    count: int
    rate: Share
    low: Share
    high: Share
    baseline: Share | None


class IncidentVerdict(Resource):
    """Calls that got worse for one cause, since when, and what it comes from."""

    state: Literal["ok", "degrading", "not_enough_data"]
    since: datetime | None
    since_low: datetime | None
    since_high: datetime | None
    environment: str | None
    node: str | None
    provider: str | None
    model: str | None
    cause: Cause | None
    cause_value: str | None
    top_kind: str | None
    rate: Share | None
    low: Share | None
    high: Share | None
    baseline: Share | None
    runs: Annotated[int, Field(description="how many `rate` is of")]
    counted: Annotated[Literal["runs", "calls"] | None, Field(description="what `rate` is of")]
    beside: Annotated[OtherRateResource | None, Field(description="the rate in the other unit")]
    rise: Annotated[RiseResource | None, Field(description="of older verdicts; else null")]
    excess: list[ExcessShareResource]
    advice: list[Advice]
    sentence: str


class CauseVerdict(IncidentVerdict):
    """Which calls got worse, since when, and what it comes from: the gravest cause."""

    incidents: Annotated[
        list[IncidentVerdict],
        Field(description="each cause by itself, the gravest first; empty when nothing degrades"),
    ]
    judged: JudgedResources
    covers: CoversResource


ALL_JUDGED = -1
"""In a cursor: beyond all judged series; it goes on by the ids of the others."""


class SeriesView(ListView):
    """How every (environment, node, provider, model) stands."""

    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        parameters=[*SERIES_PARAMETERS, *PAGE_PARAMETERS],
        responses={200: Counted[SeriesItem], **EXPORTS},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List series of the window (the last 24 hours unless told), worst first.

        In a project of more than a thousand series those with few calls and failures come
        after all others, in the order in which they were first seen.
        """
        params = request.query_params.dict()
        selection = select(params, [*SERIES_PARAMETERS, *PAGE_PARAMETERS])
        refuse_uncounted(selection)
        now = clock.now()
        read_page = partial(list_series, project_of(request).pk, selection, now)
        beside = {"covers": describe_covers(*covered_by(selection, now))}
        columns = list(SeriesItem.model_fields)
        return self.answer_list(request, columns, read_page, beside)


def refuse_uncounted(selection: Selection) -> None:
    """Raise ValidationError (400) for what series are not counted by."""
    filters = selection.rollup_filters
    if selection.text.words or any(t.field not in ROLLUP_FIELDS for t in selection.text.terms):
        message = f"series can be filtered by {', '.join((*SERIES_FIELDS, *VERSION_FIELDS))} only"
        raise ValidationError({"q": message})
    if uncounted := set(selection.filters) - set(filters):
        raise ValidationError(dict.fromkeys(uncounted, "series cannot be filtered by it"))


def list_series(
    project_id: int,
    selection: Selection,
    now: datetime,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
) -> Page:
    """Return a page of the series of a selection in the wire format, and the next cursor.

    The judged ones come first, worst first, then those that were left out. The range of the
    selection is counted; how a series stands is of the moment it ends at.
    """
    passed, last = read_count_cursor(cursor) if cursor else (0, 0)
    judged = read_statuses(project_id, selection, now)
    if passed == ALL_JUDGED:
        return _list_others(project_id, selection, now, judged, limit, last)
    ids = judged_ids(project_id, judged)
    window = window_of(selection, now)
    counts = counts_by_series(project_id, window, selection.rollup_terms, ids)
    kept = judged.kept_by(selection, counts)
    items = _describe(project_id, selection, now, kept[passed : passed + limit], counts)
    if passed + limit < len(kept):
        return items, write_count_cursor(passed + limit, 0)
    return items, write_count_cursor(ALL_JUDGED, 0) if judged.left_out else None


def _list_others(
    project_id: int, selection: Selection, now: datetime, judged: StatusSet, limit: int, last: int
) -> Page:
    """Return a page of the series that were left out, after an id; they are judged here."""
    known = judged_ids(project_id, judged) or ()
    more = next_series(project_id, selection.series_terms, last, limit + len(known))
    ids = [series for series in more if series not in set(known)][:limit]
    at = judged.at if selection.end is None or selection.end > now else selection.end
    question = StatusQuestion(project_id, at, now, selection.version_terms, ids)
    others = replace(judged, series=count_statuses(question, {}))
    window = window_of(selection, now)
    counts = counts_by_series(project_id, window, selection.rollup_terms, ids)
    items = _describe(project_id, selection, now, others.kept_by(selection, counts), counts)
    return items, write_count_cursor(ALL_JUDGED, ids[-1]) if len(ids) == limit else None


def _describe(
    project_id: int,
    selection: Selection,
    now: datetime,
    statuses: Sequence[SeriesStatus],
    counts: Mapping[SeriesKey, RunCounts],
) -> list[dict[str, Any]]:
    window = window_of(selection, now)
    worse = worse_by_series(project_id, window, selection.rollup_terms)
    return [
        describe_series(
            status, counts.get(status.key, RunCounts()), worse.get(status.key, NOT_ASSESSED)
        )
        for status in statuses
    ]


def describe_series(status: SeriesStatus, counts: RunCounts, worse: Side) -> dict[str, Any]:
    """Return a series in the wire format; `since` is when its degradation began."""
    onset = status.onset
    # Where runs are told, they are counted, whatever the state is of.
    unit: Unit = "run" if counts.runs else status.unit
    counted = counts.by_call if unit == "call" else counts
    usual, calls_usual = status.before.of(unit), status.before.calls
    low, high = wilson_interval(worse.good, worse.trials) if worse.trials else (None, None)
    item = SeriesItem(
        **status.key._asdict(),
        **asdict(rate_series(counted)),
        state=status.state,
        baseline=usual.share if usual.runs else None,
        runs=counted.runs,
        degraded=counted.degraded,
        calls=counts.calls,
        calls_failed=counts.calls_failed,
        calls_baseline=calls_usual.share if calls_usual.runs else None,
        assessed=worse.trials,
        valid_but_worse=worse.good,
        valid_but_worse_rate=worse.share,
        valid_but_worse_low=low,
        valid_but_worse_high=high,
        retry_tokens=counts.retry_tokens,
        retry_seconds=counts.retry_milliseconds / 1000,
        unchecked=counts.unchecked,
        cancelled=counts.cancelled,
        counted=COUNTED[unit],
        judged_by=COUNTED[status.unit],
        since=status.since,
        since_low=onset.low if onset else None,
        since_high=onset.high if onset else None,
        judged_at=status.at,
        judged_anew_since=status.anew_since,
    )
    return item.model_dump()


class VerdictView(KeyedView):
    """Which calls got worse, since when, whether it is us or them, and what to change."""

    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="verdict", parameters=SERIES_PARAMETERS, responses={200: CauseVerdict}
    )
    def get(self, request: Request) -> Response:
        """Judge the calls of the window (the last 24 hours unless told)."""
        selection = select(request.query_params.dict(), SERIES_PARAMETERS)
        refuse_uncounted(selection)
        project_id, now = project_of(request).pk, clock.now()
        verdict = recent_verdict_of(project_id, selection, now)
        judged = {
            name: {
                "count": share.count,
                "total": share.total,
                **(asdict(share.chance) if share.chance else NO_CHANCE),
            }
            for name, share in judged_of(project_id, now).items()
        }
        covers = describe_covers(*judged_times(selection, now))
        return Response({**describe(verdict), "judged": judged, "covers": covers})
