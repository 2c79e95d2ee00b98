"""GET /api/v1/runs: what agents did, a run an item."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import Field
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, project_of
from diagnostics.prices.prices import costs_of
from diagnostics.queries.runs import (
    SEARCHES,
    VALID,
    assessed_as,
    assessments_of,
    keep_assessed,
    read_runs,
)
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import EVENT_PARAMETERS, read_choices, select
from diagnostics.rest.resources import EXPORTS, Paged, Resource
from diagnostics.selection.fields import OUTCOME_NAMES, WIDEST_RANGE
from diagnostics.selection.selection import Selection
from diagnostics.store.run_models import AgentRun, AssessedAs, RunOutcome

MOST_ASSESSMENTS = 100
RUN_OUTCOMES = [outcome.value for outcome in RunOutcome]
VERDICTS = [verdict.value for verdict in AssessedAs]
PARAMETERS = [
    *(parameter for parameter in EVENT_PARAMETERS if parameter.name != "outcome"),
    OpenApiParameter("outcome", str, enum=list(dict.fromkeys([*RUN_OUTCOMES, *OUTCOME_NAMES]))),
    OpenApiParameter("assessed", str, enum=VERDICTS, description="late outcome"),
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


KeepRuns = Callable[[QuerySet[AgentRun], str], QuerySet[AgentRun]]
OTHERS = frozenset({"models", "cost_usd", "assessed", "valid_but_worse"})


class AgentRunsView(ListView):
    """What agents did."""

    required_scopes = {"GET": Scope.READ}
    most_streamed = 1_000_000
    searches: Sequence[str] = SEARCHES
    own: Mapping[str, tuple[Collection[str], KeepRuns]] = {"assessed": (VERDICTS, keep_assessed)}
    """The filters of runs alone: their values, and what keeps the runs that have one."""

    @extend_schema(parameters=PARAMETERS, responses={200: Paged[AgentRunResource], **EXPORTS})
    def get(self, request: Request) -> HttpResponseBase:
        """List runs, newest first."""
        parameters = request.query_params.dict()
        chosen = read_choices(parameters, {name: known for name, (known, _) in self.own.items()})
        # Of a run alone: the language of filters knows the others.
        outcome = parameters.get("outcome") if parameters.get("outcome") in RUN_OUTCOMES else None
        own = {*self.own, *(("outcome",) if outcome else ())}
        filters = {name: value for name, value in parameters.items() if name not in own}
        selection = _timed(select(filters, PARAMETERS), has_range="range" in parameters)
        project_id = project_of(request).pk

        def keep(runs: QuerySet[AgentRun]) -> QuerySet[AgentRun]:
            matching = runs.filter(outcome=outcome) if outcome else runs
            for name, value in chosen.items():
                matching = self.own[name][1](matching, value)
            return matching

        def read_page(limit: int, cursor: str | None) -> Page:
            page = read_runs(project_id, selection, limit, cursor, clock.now(), keep, self.searches)
            return describe_runs(project_id, page.runs), page.after

        return self.answer_list(request, tuple(AgentRunResource.model_fields), read_page)


def _timed(selection: Selection, *, has_range: bool) -> Selection:
    """Set the times of a range; without one, events are searched as far back as it goes."""
    if selection.begin or not has_range:
        return replace(selection, range=WIDEST_RANGE)
    return replace(selection, begin=selection.since(selection.end or clock.now()))


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
        assessments = assessments_of(project_id, run.correlation_id)[:MOST_ASSESSMENTS]
        shown = [AssessmentResource.dump(assessment) for assessment in assessments]
        return Response({**describe_runs(project_id, [run])[0], "assessments": shown})


def describe_runs(project_id: int, runs: Sequence[AgentRun]) -> list[dict[str, Any]]:
    costs = costs_of(project_id, runs)
    assessments = assessed_as(project_id, [run.correlation_id for run in runs])
    same = AgentRunResource.model_fields.keys() - OTHERS
    return [
        AgentRunResource(
            **{name: getattr(run, name) for name in same},
            models=run.called_models,
            cost_usd=costs.get(run.correlation_id),
            assessed=(verdict := assessments.get(run.correlation_id)),
            valid_but_worse=verdict == AssessedAs.BAD and run.outcome in VALID,
        ).model_dump()
        for run in runs
    ]
