"""/api/v1/incidents: what went wrong together, and what is done about it."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Annotated, Any

from django.db.models import Prefetch, Q, QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import BaseModel, BeforeValidator, Field
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, key_of, project_of
from diagnostics.alerting import incident_actions as actions
from diagnostics.alerting.incident_models import Incident, IncidentCause, IncidentSlice
from diagnostics.alerting.states import Severity
from diagnostics.rest.bodies import InvalidBodyError, fault, read_model
from diagnostics.rest.cursors import Keyset
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import PAGE_PARAMETERS, TIME_PARAMETERS, read_choices, select
from diagnostics.rest.resources import EXPORTS, REFUSALS, ROW_PROBLEMS, Paged, Resource
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.selection.selection import Selection
from diagnostics.verdict.cause import Cause
from diagnostics.verdict.verdicts import StoredVerdict


def person_name(user: Any) -> str | None:  # noqa: ANN401 - a user, or nobody
    return user if user is None or isinstance(user, str) else user.get_username()


Person = Annotated[str | None, BeforeValidator(person_name)]
Given = Annotated[str | None, BeforeValidator(lambda text: text or None)]
SEVERITIES = ", ".join(Severity)
STATES = ", ".join(Incident.State.values)


class IncidentSliceResource(Resource):
    """One slice of a rule in an incident; `k` bad ones of `n` when it fired."""

    rule_id: int
    rule: Annotated[str, BeforeValidator(attrgetter("name"))]
    rule_version: int
    slice: dict[str, str | None]
    severity: Annotated[str, Field(description=SEVERITIES)]
    onset: datetime
    fired_at: datetime
    cleared_at: datetime | None
    k: int
    n: int
    value: float
    bound: float
    baseline: float | None


class IncidentResource(Resource):
    """An incident; times are null until it happened."""

    id: int
    title: str
    state: Annotated[str, Field(description=STATES)]
    severity: Annotated[str, Field(description=SEVERITIES)]
    onset: Annotated[datetime, Field(description="since when")]
    fired_at: datetime
    acknowledged_at: datetime | None
    acknowledged_by: Person
    cleared_at: datetime | None
    assignee: Person
    cause: Annotated[Given, Field(description="of the verdict")]
    cause_value: Given
    sentence: Annotated[
        str | None,
        Field(validation_alias="latest_verdict", description="of the verdict, as it is now"),
        BeforeValidator(lambda verdict: verdict.text or None),
    ]
    resolution_cause: Annotated[str | None, Field(description="as a person said")]
    tracker_url: Given
    filter: Annotated[str, Field(description="the affected calls")]
    is_backfilled: bool


class IncidentEntry(Resource):
    """One line of the timeline: a transition or a note."""

    at: datetime
    kind: str
    by: Person
    text: str | None


class WholeIncidentResource(IncidentResource):
    """An incident with all there is about it."""

    verdict: Annotated[dict[str, Any], Field(description="when it fired; as /api/v1/verdict")]
    verdict_now: dict[str, Any]
    slices: list[IncidentSliceResource]
    timeline: list[IncidentEntry]


class ResolveIncident(BaseModel, extra="forbid"):
    """Why it is over."""

    cause: Annotated[str, Field(description=", ".join(IncidentCause))] = IncidentCause.OTHER
    text: str = ""


class CommentIncident(BaseModel, extra="forbid"):
    """A comment."""

    text: str


def describe_whole_incident(row: Incident) -> dict[str, Any]:
    lines = (
        {"at": row.at, "kind": row.kind, "by": row.by, "text": getattr(row, "text", None)}
        for rows in (row.transitions, row.notes)
        for row in rows.select_related("by").order_by("at", "pk")
    )
    slices = row.slices.select_related("rule").order_by("pk")
    return {
        **IncidentResource.dump(row),
        "verdict": StoredVerdict.model_validate(row.verdict).wire,
        "verdict_now": StoredVerdict.model_validate(row.verdict_now).wire,
        "slices": [IncidentSliceResource.dump(row) for row in slices],
        "timeline": sorted(map(IncidentEntry.dump, lines), key=itemgetter("at")),
    }


INCIDENT_ORDER = Keyset("fired_at", "pk", int)
CHOICES: dict[str, list[str]] = {
    "state": Incident.State.values,
    "severity": list(Severity),
    "cause": list(Cause),
}
PARAMETERS = [
    *TIME_PARAMETERS,
    *(
        OpenApiParameter(field, str, description="of one of its slices; - asks for null")
        for field in SERIES_FIELDS
    ),
    OpenApiParameter("q", str, description="model:haiku -env:dev"),
    OpenApiParameter("state", str, description=STATES),
    OpenApiParameter("severity", str, description=SEVERITIES),
    OpenApiParameter("cause", str, description="of the verdict: provider_outage, model ..."),
]
COLUMNS = list(IncidentResource.model_fields)


class IncidentsView(ListView):
    required_scopes = {"GET": Scope.READ}
    # Those that are open are listed whenever they fired.
    has_all_open = False

    @extend_schema(
        parameters=[*PARAMETERS, *PAGE_PARAMETERS],
        responses={200: Paged[IncidentResource], **EXPORTS},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List the incidents that fired in the window (24 hours unless told), latest first."""
        parameters = request.query_params.dict()
        selection = select(parameters, PARAMETERS, also=CHOICES)
        wrong = {term.field for term in selection.terms} - set(SERIES_FIELDS)
        if selection.text.words or wrong:
            known = ", ".join(SERIES_FIELDS)
            raise ValidationError({"q": f"incidents can be filtered by {known} only"})
        since, until = selection.window(clock.now())
        listed = Q(fired_at__gte=since)
        if self.has_all_open:
            listed |= Q(cleared_at=None)
        rows = Incident.objects.filter(
            listed, project=project_of(request), fired_at__lt=until
        ).filter(**read_choices(parameters, CHOICES))

        def read_page(limit: int, cursor: str | None) -> Page:
            kept = _kept(rows.filter(INCIDENT_ORDER.after(cursor)), selection)
            page, after = INCIDENT_ORDER.cut(list(islice(kept, limit + 1)), limit)
            return [IncidentResource.dump(row) for row in page], after

        return self.answer_list(request, COLUMNS, read_page)


class IncidentView(KeyedView):
    required_scopes = {"GET": Scope.READ}

    @extend_schema(responses={200: WholeIncidentResource, **ROW_PROBLEMS})
    def get(self, request: Request, incident_id: int) -> Response:
        """Show an incident: verdicts, slices and timeline."""
        return Response(describe_whole_incident(find(request, incident_id)))


class ActionView(KeyedView):
    required_scopes = {"POST": Scope.ADMIN}

    def answer(self, request: Request, incident_id: int) -> Response:
        return Response(describe_whole_incident(find(request, incident_id)))


class AcknowledgeView(ActionView):
    @extend_schema(request=None, responses={200: WholeIncidentResource, **ROW_PROBLEMS})
    def post(self, request: Request, incident_id: int) -> Response:
        """Acknowledge an incident; once more changes nothing."""
        incident = find(request, incident_id)
        actions.acknowledge(incident, key_of(request))
        return self.answer(request, incident_id)


class ResolveView(ActionView):
    @extend_schema(
        request=ResolveIncident, responses={200: WholeIncidentResource, **REFUSALS, **ROW_PROBLEMS}
    )
    def post(self, request: Request, incident_id: int) -> Response:
        """End an incident with its cause, or tell the cause of one that has ended."""
        incident = find(request, incident_id)
        body = read_model(request._request, ResolveIncident)
        try:
            actions.resolve(incident, key_of(request), body.cause, body.text)
        except actions.IncidentError as error:
            raise InvalidBodyError([fault("/cause", str(error))]) from error
        return self.answer(request, incident_id)


class CommentView(ActionView):
    @extend_schema(
        request=CommentIncident, responses={200: WholeIncidentResource, **REFUSALS, **ROW_PROBLEMS}
    )
    def post(self, request: Request, incident_id: int) -> Response:
        """Add a comment to the timeline; it is redacted first."""
        incident = find(request, incident_id)
        text = read_model(request._request, CommentIncident).text
        if not actions.comment(incident, key_of(request), text):
            raise InvalidBodyError([fault("/text", "a text")])
        return self.answer(request, incident_id)


def find(request: Request, incident_id: int) -> Incident:
    return actions.incident_of(project_of(request).pk, incident_id)


def _kept(rows: QuerySet[Incident], selection: Selection) -> Iterator[Incident]:
    slices = IncidentSlice.objects.only("incident_id", "slice")
    ordered = rows.order_by("-fired_at", "-pk")
    with_people = ordered.select_related("assignee", "acknowledged_by")
    for row in with_people.prefetch_related(Prefetch("slices", slices)).iterator(200):
        if row.is_kept_by(selection.terms):
            yield row
