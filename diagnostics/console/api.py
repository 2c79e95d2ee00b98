"""GET /api/v1/verdict and GET /api/v1/series."""

from dataclasses import asdict
from datetime import datetime
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
from diagnostics.analysis.series import SEVERITY, RatedSeries, RunCurve, SeriesState, axis_of
from diagnostics.queries.events import SeriesRow, series_rows
from diagnostics.queries.trends import trends
from diagnostics.rest.examples import SERIES_PAGE
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import FORMAT_PARAMETER, SERIES_PARAMETERS, select
from diagnostics.rest.openapi import EXPORTS
from diagnostics.rest.resources import Paged, Resource
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.selection.selection import Selection
from diagnostics.verdict.ratings import JudgedShare
from diagnostics.verdict.suspects import Cause
from diagnostics.verdict.verdicts import Verdict, describe, recent_verdict_of, since_of, verdict_of

Share = Annotated[float, Field(json_schema_extra={"format": "double"})]


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
    retry_tokens: int
    retry_seconds: Share
    since: datetime | None


class ExcessShareResource(Resource):
    """How much of the excess one value of a dimension has, beside its share of calls."""

    dimension: str
    value: str
    share: Annotated[Share, Field(description="of the excess; may be below 0 or above 1")]
    traffic_share: Share
    lift: Annotated[Share | None, Field(description="share / traffic_share")]


class AdviceResource(Resource):
    """One thing to change, and why."""

    text: str
    evidence: str


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
    excess: list[ExcessShareResource]
    advice: list[AdviceResource]
    sentence: str


class CauseVerdict(IncidentVerdict):
    """Which calls got worse, since when, and what it comes from: the gravest cause."""

    incidents: Annotated[
        list[IncidentVerdict],
        Field(description="each cause by itself, the gravest first; empty when nothing degrades"),
    ]
    judged: JudgedResources


class SeriesView(ListView):
    """How every (environment, node, provider, model) stands."""

    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="series_list",
        parameters=[*SERIES_PARAMETERS, FORMAT_PARAMETER],
        examples=[SERIES_PAGE],
        responses={200: Paged[SeriesItem], **EXPORTS},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List series of the window (the last 24 hours unless told), worst first."""
        asked = request.query_params.dict()
        selection = select(asked, [*SERIES_PARAMETERS, FORMAT_PARAMETER])
        refuse_uncounted(selection)
        items = list_series(project_of(request).pk, selection, clock.now())

        def read_page(limit: int, cursor: str | None) -> Page:
            return items, None

        return self.answer_list(request, list(SeriesItem.model_fields), read_page, None, None)


def refuse_uncounted(selection: Selection) -> None:
    """Raise ValidationError (400) for what series are not counted by."""
    filters = selection.rollup_filters
    terms = selection.text.terms
    if selection.text.words or any(t.field not in SERIES_FIELDS for t in terms):
        message = f"series are told apart by {', '.join(SERIES_FIELDS)} only"
        raise ValidationError({"q": message})
    if uncounted := set(selection.filters) - set(filters):
        raise ValidationError(dict.fromkeys(uncounted, "series are not counted by it"))


def list_series(project_id: int, selection: Selection, now: datetime) -> list[dict[str, Any]]:
    """Return the series of a selection in the wire format, worst first."""
    since, until = selection.window(now)
    versions = selection.version_terms
    terms = selection.rollup_terms
    axis = axis_of(since, until)
    curves = trends(project_id, axis.since, axis.until, axis.count, versions)
    rows = [
        (row, _subject(row, RunCurve(axis.since, axis.width, curves.get(row.key, []))))
        for row in series_rows(project_id, since, until, terms=terms)
    ]
    # The verdict says since when: it need not be asked while nothing degrades.
    is_calm = all(s.state is not SeriesState.DEGRADING for _, s in rows)
    verdict = None if is_calm else recent_verdict_of(project_id, selection, now)
    items = [describe_series(row, subject, verdict) for row, subject in rows]
    items.sort(key=lambda item: SEVERITY[item["state"]])
    return items


def describe_series(
    row: SeriesRow, subject: RatedSeries, verdict: Verdict | None
) -> dict[str, Any]:
    """Return a series in the wire format; `since` is when its degradation began."""
    item = SeriesItem(
        **row.key._asdict(),
        **{**asdict(row.rates), "state": subject.state},
        runs=row.counts.runs,
        degraded=row.counts.degraded,
        retry_tokens=row.counts.retry_tokens,
        retry_seconds=row.counts.retry_milliseconds / 1000,
        since=since_of(row.key, subject, verdict) if verdict else None,
    )
    return item.model_dump()


def _subject(row: SeriesRow, curve: RunCurve) -> RatedSeries:
    return RatedSeries(f"{row.provider}/{row.model}", row.node, row.counts, curve=curve)


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
        verdict = verdict_of(project_id, selection, now)
        judged = {name: _judged(one) for name, one in judged_of(project_id, now).items()}
        return Response({**describe(verdict), "judged": judged})


def _judged(found: JudgedShare) -> dict[str, Any]:
    figures = asdict(found.chance) if found.chance else dict.fromkeys(("share", "low", "high"))
    return {"count": found.count, "total": found.total, **figures}
