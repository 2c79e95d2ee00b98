"""Incidents in the wire format, with examples."""

from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from diagnostics.alerting.incident_models import Incident, IncidentCause
from diagnostics.alerting.states import Severity
from diagnostics.rest.resources import Resource
from diagnostics.verdict.wording import wire_form


def person_name(user: Any) -> str | None:  # noqa: ANN401 - a user, or nobody
    """Return who did it; None when nobody is known."""
    return user if user is None or isinstance(user, str) else user.get_username()


Person = Annotated[str | None, BeforeValidator(person_name)]
Given = Annotated[str | None, BeforeValidator(lambda text: text or None)]
SEVERITIES = ", ".join(Severity)


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
    state: Annotated[str, Field(description="open, acknowledged, resolved")]
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
        BeforeValidator(lambda verdict: wire_form(verdict).get("sentence")),
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
    """Return an incident with its verdicts, slices and timeline."""
    lines = (
        {"at": row.at, "kind": row.kind, "by": row.by, "text": getattr(row, "text", None)}
        for rows in (row.transitions, row.notes)
        for row in rows.select_related("by").order_by("at", "pk")
    )
    slices = row.slices.select_related("rule").order_by("pk")
    return {
        **IncidentResource.dump(row),
        "verdict": wire_form(row.verdict),
        "verdict_now": wire_form(row.verdict_now),
        "slices": [IncidentSliceResource.dump(row) for row in slices],
        "timeline": sorted(map(IncidentEntry.dump, lines), key=itemgetter("at")),
    }
