"""GET /api/v1/runs: what agents did, a run an item."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import Field
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, project_of
from diagnostics.prices.run_costs import costs_of
from diagnostics.queries.assessments import VALID, assessed_as, assessments_of, keep_assessed
from diagnostics.queries.runs import FIELDS, page_of_runs, runs_of
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import (
    PAGE_PARAMETERS,
    TIME_PARAMETERS,
    read_choices,
    read_list_limit,
    select,
)
from diagnostics.rest.openapi import EXPORTS
from diagnostics.rest.resources import Paged, Resource
from diagnostics.store.run_models import AgentRun, AssessedAs, RunOutcome

MOST_STREAMED = 1_000_000
MOST_ASSESSMENTS = 100
OUTCOMES = [outcome.value for outcome in RunOutcome]
VERDICTS = [verdict.value for verdict in AssessedAs]
PARAMETERS = [
    *TIME_PARAMETERS,
    *(OpenApiParameter(name, str, description="exact") for name in FIELDS),
    OpenApiParameter("outcome", str, enum=OUTCOMES),
    OpenApiParameter("assessed", str, enum=VERDICTS, description="late outcome"),
    OpenApiParameter("q", str, description='model:haiku corr:run-88 "words"'),
    *PAGE_PARAMETERS,
]


class AgentRunResource(Resource):
    """A run: everything that an agent did for one correlation id."""

    correlation_id: str
    outcome: Annotated[RunOutcome, Field(description="open: no event says yet how it ended")]
    attempts: Annotated[int, Field(description="the most that one answer took")]
    calls: int
    provider: Annotated[str | None, Field(description="of the latest call, like model")]
    model: str | None
    models: Annotated[list[str], Field(description="provider/model, the first 8 by name")]
    nodes: Annotated[list[str], Field(description="the first 8 by name")]
    environment: str | None
    source: str | None
    release: str | None
    prompt_version: str | None
    input_tokens: int
    output_tokens: int
    cost_usd: Annotated[Decimal | None, Field(description="null where a price is not known")]
    began_at: datetime
    ended_at: datetime
    assessed: Annotated[AssessedAs | None, Field(description="later; bad where anybody said so")]
    valid_but_worse: Annotated[bool, Field(description="a valid answer, and assessed as bad")]


class AssessmentResource(Resource):
    """What a user or an evaluator said later of a run's answer."""

    source: str
    verdict: AssessedAs
    score: float | None
    reason: str | None
    at: Annotated[datetime, Field(validation_alias="assessed_at")]


class AgentRunDetailResource(AgentRunResource):
    """A run, with what was said of it."""

    assessments: Annotated[list[AssessmentResource], Field(description="the latest 100")]


OTHERS = frozenset({"models", "cost_usd", "assessed", "valid_but_worse"})


class AgentRunsView(ListView):
    """What agents did."""

    required_scopes = {"GET": Scope.READ}

    @extend_schema(
        operation_id="runs_list",
        parameters=PARAMETERS,
        responses={200: Paged[AgentRunResource], **EXPORTS},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List runs, newest first."""
        asked = request.query_params.dict()
        chosen = read_choices(asked, {"outcome": OUTCOMES, "assessed": VERDICTS})
        given = {name: value for name, value in asked.items() if name not in chosen}
        selection = select(given, PARAMETERS)
        if any(term.field not in FIELDS for term in selection.text.terms):
            raise ValidationError({"q": f"runs are told apart by {', '.join(FIELDS)} only"})
        project_id = project_of(request).pk
        verdict = chosen.pop("assessed", None)
        found = runs_of(project_id, selection).filter(**chosen)
        if verdict is not None:
            found = keep_assessed(found, verdict)

        def read_page(limit: int, cursor: str | None) -> Page:
            runs, after = page_of_runs(found, limit, cursor)
            return describe_runs(project_id, runs), after

        limit = read_list_limit(request, MOST_STREAMED)
        return self.answer_list(
            request, tuple(AgentRunResource.model_fields), read_page, limit, asked.get("cursor")
        )


class AgentRunView(KeyedView):
    """One run."""

    required_scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="run", responses={200: AgentRunDetailResource})
    def get(self, request: Request, reference: str) -> Response:
        """Show a run by its correlation id."""
        project_id = project_of(request).pk
        run = get_object_or_404(
            AgentRun, project_id=project_id, correlation_id=reference.replace("\0", "")
        )
        said = assessments_of(project_id, run.correlation_id)[:MOST_ASSESSMENTS]
        shown = [AssessmentResource.dump(one) for one in said]
        return Response({**describe_runs(project_id, [run])[0], "assessments": shown})


def describe_runs(project_id: int, runs: Sequence[AgentRun]) -> list[dict[str, Any]]:
    """Return runs in the wire format."""
    costs = costs_of(project_id, runs)
    said = assessed_as(project_id, [run.correlation_id for run in runs])
    same = AgentRunResource.model_fields.keys() - OTHERS
    return [
        AgentRunResource(
            **{name: getattr(run, name) for name in same},
            models=run.called_models,
            cost_usd=costs.get(run.correlation_id),
            assessed=(verdict := said.get(run.correlation_id)),
            valid_but_worse=verdict == AssessedAs.BAD and run.outcome in VALID,
        ).model_dump()
        for run in runs
    ]
