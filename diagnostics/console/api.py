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
from diagnostics.analysis.series import RunCounts, rate_series
from diagnostics.analysis.status import SeriesState, SeriesStatus
from diagnostics.queries.events import series_rows
from diagnostics.rest.examples import SERIES_PAGE
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import FORMAT_PARAMETER, SERIES_PARAMETERS, select
from diagnostics.rest.openapi import EXPORTS
from diagnostics.rest.resources import Paged, Resource
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.selection.selection import Selection
from diagnostics.verdict.ratings import JudgedShare
from diagnostics.verdict.statuses import read_statuses, recent_verdict_of
from diagnostics.verdict.suspects import Cause
from diagnostics.verdict.verdicts import describe

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
    since_low: datetime | None
    since_high: datetime | None
    judged_at: Annotated[datetime, Field(description="the moment of state, since and baseline")]


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
    """Return the series of a selection in the wire format, worst first.

    The range of the selection is counted; how a series stands is of the moment it ends at.
    """
    since, until = selection.window(now)
    rows = series_rows(project_id, since, until, terms=selection.rollup_terms)
    counts = {row.key: row.counts for row in rows}
    found = read_statuses(project_id, selection, now)
    statuses = found.kept_by(selection, counts)
    return [describe_series(one, counts.get(one.key, RunCounts())) for one in statuses]


def describe_series(status: SeriesStatus, counts: RunCounts) -> dict[str, Any]:
    """Return a series in the wire format; `since` is when its degradation began."""
    onset = status.onset
    item = SeriesItem(
        **status.key._asdict(),
        **asdict(rate_series(counts)),
        state=status.state,
        baseline=status.baseline,
        runs=counts.runs,
        degraded=counts.degraded,
        retry_tokens=counts.retry_tokens,
        retry_seconds=counts.retry_milliseconds / 1000,
        since=status.since,
        since_low=onset.low if onset else None,
        since_high=onset.high if onset else None,
        judged_at=status.at,
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
        judged = {name: _judged(one) for name, one in judged_of(project_id, now).items()}
        return Response({**describe(verdict), "judged": judged})


def _judged(found: JudgedShare) -> dict[str, Any]:
    figures = asdict(found.chance) if found.chance else dict.fromkeys(("share", "low", "high"))
    return {"count": found.count, "total": found.total, **figures}
