"""GET /api/v1/failures and one of them: failure groups in a window."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import Field
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, project_of
from diagnostics.failures.counts import GroupQuestion
from diagnostics.failures.counts import read_question as read_selected
from diagnostics.failures.groups import GroupRow, group_row, groups_of
from diagnostics.failures.models import FailureGroup
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import EVENT_PARAMETERS, PAGE_PARAMETERS, read_choices, select
from diagnostics.rest.resources import (
    EXPORTS,
    Counted,
    CoversResource,
    ProblemResource,
    Resource,
    describe_covers,
)

STATES: Mapping[str, Sequence[str]] = {state: (state,) for state in FailureGroup.State.values}
"""The states that each choice of the filter keeps."""
PARAMETERS = [
    *(parameter for parameter in EVENT_PARAMETERS if parameter not in PAGE_PARAMETERS),
    OpenApiParameter("state", str, enum=list(STATES)),
]
READ = {"GET": Scope.READ}


class GroupModelResource(Resource):
    """The failures of one model."""

    provider: str | None
    model: str | None
    seen: int


class FailureResource(Resource):
    """A failure group in a window."""

    id: int
    fingerprint: UUID
    fingerprint_version: int
    state: str = Field(json_schema_extra={"enum": list(STATES)})
    node: str
    schema_name: str | None = Field(alias="schema")
    kind: str
    error_type: str
    pointer: str
    detail: str
    seen: int = Field(description="in the window, under the filters")
    seen_in_all: int
    first_seen: datetime
    last_seen: datetime
    runs: int = Field(description="affected by its latest 100 failures")
    repaired: int = Field(description="of runs: recovered")
    models: list[GroupModelResource]
    trend: list[int] = Field(description="24 equal stretches, oldest first")


COLUMNS = [field.alias or name for name, field in FailureResource.model_fields.items()]


class OneFailureResource(FailureResource):
    """A failure group in a window, and the counted times."""

    covers: CoversResource


class FailuresView(ListView):
    """Failure groups."""

    required_scopes = READ
    states = STATES

    @extend_schema(
        parameters=[*PARAMETERS, *PAGE_PARAMETERS],
        responses={200: Counted[FailureResource], **EXPORTS},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List failure groups seen in the window (24 hours by default)."""
        question, covers = read_question(request.query_params.dict(), self.states)
        project_id = project_of(request).pk

        def read_page(limit: int, cursor: str | None) -> Page:
            rows, after = groups_of(project_id, question, limit, cursor)
            return [describe_group(row) for row in rows], after

        return self.answer_list(request, COLUMNS, read_page, {"covers": covers})


class FailureView(KeyedView):
    """One failure group."""

    required_scopes = READ

    @extend_schema(
        parameters=PARAMETERS,
        responses={
            200: OneFailureResource,
            **dict.fromkeys((400, 401, 403, 404, 503), ProblemResource),
        },
    )
    def get(self, request: Request, group_id: int) -> Response:
        """Show one failure group, even if it was not seen in the window."""
        question, covers = read_question(request.query_params.dict())
        row = group_row(project_of(request).pk, group_id, question)
        if row is None:
            raise Http404
        return Response({**describe_group(row), "covers": covers})


def read_question(
    params: dict[str, str], states: Mapping[str, Sequence[str]] = STATES
) -> tuple[GroupQuestion, dict[str, Any]]:
    """Return the question and the times it covers; ValidationError (400) names invalid filters.

    Filters beyond rollups (words, attempt, outcome, pointer) are counted event by event, over at
    most the last 7 days of the range.
    """
    selection = select(params, [*PARAMETERS, *PAGE_PARAMETERS], also=("state",))
    state = read_choices(params, {"state": states}).get("state", "")
    now = clock.now()
    question, _ = read_selected(selection, now, states.get(state))
    return question, describe_covers(*selection.covered(question.begin, question.end, now))


def describe_group(row: GroupRow) -> dict[str, Any]:
    models = [
        {"provider": provider, "model": model, "seen": count}
        for (provider, model), count in row.models.items()
    ]
    counts = {name: getattr(row, name) for name in ("seen", "runs", "repaired", "trend")}
    group = {**vars(row.group), "seen_in_all": row.group.seen}
    return FailureResource.dump({**group, **counts, "models": models})
