"""The REST API of plan runs: submit, inspect, cancel, resolve a step, rerun."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StringConstraints
from rest_framework import status
from rest_framework.exceptions import APIException, NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.audit_log import noting
from diagnostics.accounts.authentication import KeyedView, key_of, project_of
from diagnostics.redaction.redactor import redact_name
from diagnostics.rest.bodies import InvalidBodyError
from diagnostics.rest.filters import read_options
from diagnostics.rest.resources import BODY_PROBLEMS, Json, ProblemResource, Resource
from failsoft.plans.contract import MAX_PAYLOAD_BYTES, PlanPayload, TaskStatus
from failsoft.plans.violations import Violation
from plans.bodies import LocatedFault, describe_violations, read_json_body
from plans.models.run import Run
from plans.runs.ended_runs import Verdict, rerun, resolve_steps
from plans.runs.records import check_results, results_document, results_of
from plans.runs.submission import InvalidPlanError, RunRefusedError, cancel_run, submit_run

_MAX_POSITION = 1_000_000
_NOT_FOUND = frozenset({"run_not_found", "step_not_found"})


class RefusedPlan(Resource):
    """A plan that breaks the contract; nothing was stored or run."""

    detail: str
    code: str
    errors: list[LocatedFault]


class QueuedRun(Resource):
    """A run that was accepted."""

    run_id: UUID = Field(validation_alias="id")
    correlation_id: str
    contract_version: str
    status: Run.State = Field(validation_alias="state")
    url: str


class RunResults(Resource):
    """The results document of a run that has ended."""

    contract_version: str
    results: list[Json]


class RunResource(Resource):
    """A run with the rows it has so far; `__meta__` is the last once it has ended.

    `release` was deployed when it was submitted; `refused_reason` is why no worker takes it.
    """

    run_id: UUID = Field(validation_alias="id")
    correlation_id: str
    cycle: int
    contract_version: str
    runner: Run.Runner
    strict_degraded: bool
    release: str
    refused_reason: str
    rerun_of: UUID | None = Field(validation_alias="rerun_of_id")
    status: Run.State = Field(validation_alias="state")
    task_status: TaskStatus | None
    results: list[Json]
    contract_violations: list[Violation]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


Name = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=200, pattern=r"^[^\x00]*$")
]


class _StrictModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunOptions(_StrictModel):
    """The name of a run, and the options of its execution."""

    correlation_id: Annotated[
        Name,
        Field(
            default_factory=str,
            min_length=1,
            description="Your name for the run, up to 200 characters.",
        ),
    ]
    runner: Annotated[
        Run.Runner,
        Field(description="Who executes the steps: one task (the default), or all workers."),
    ] = Run.Runner.INLINE
    strict_degraded: Annotated[
        bool, Field(description="Skip steps that depend on an output that its tool calls degraded.")
    ] = False


class ResolveRequest(_StrictModel):
    """A person's decision about a step whose outcome is unknown."""

    verdict: Annotated[
        Verdict,
        Field(description="done: it counts as ok; not_done: it failed; resume: call it again"),
    ]
    by: Annotated[Name, Field(description="Who decided.")] = ""
    new_key: Annotated[
        bool, Field(description="With resume: a new idempotency key for the call.")
    ] = False


class RerunRequest(_StrictModel):
    """The first step to run."""

    from_position: Annotated[
        Annotated[StrictInt, Field(ge=0, le=_MAX_POSITION)] | None,
        Field(description="0-based position of the first step to run; earlier results are kept."),
    ] = None
    by: Name = ""


class RunConflictError(APIException):
    """409: the request does not fit the state of the run."""

    status_code = status.HTTP_409_CONFLICT


class RunsView(KeyedView):
    required_scopes = {"POST": Scope.ADMIN}

    @extend_schema(
        parameters=[RunOptions],  # type: ignore[list-item] # described by ModelSchema
        request=PlanPayload,
        responses={202: QueuedRun, 422: RefusedPlan, **BODY_PROBLEMS},
    )
    def post(self, request: Request) -> Response:
        """Validate a plan payload and queue its run."""
        options = read_options(RunOptions, request.query_params.dict())
        payload, text = read_json_body(
            request._request,  # the raw body, unparsed
            MAX_PAYLOAD_BYTES,
        )
        try:
            run = submit_run(
                project_of(request).pk,
                payload,
                redact_name(options.correlation_id) or None,
                runner=options.runner,
                strict_degraded=options.strict_degraded,
            )
        except InvalidPlanError as error:
            raise InvalidBodyError(describe_violations(text, error.violations)) from error
        return _accept(run)


class RunView(KeyedView):
    required_scopes = {"GET": Scope.READ}

    @extend_schema(responses={200: RunResource, 404: ProblemResource})
    def get(self, request: Request, run_id: UUID) -> Response:
        """Show a run, its rows so far, and whether they keep the contract."""
        return Response(_describe_run(_find(request, run_id)))


class RunResultsView(KeyedView):
    required_scopes = {"GET": Scope.READ}

    @extend_schema(responses={200: RunResults, **dict.fromkeys((404, 409), ProblemResource)})
    def get(self, request: Request, run_id: UUID) -> Response:
        """Return the document that the results check takes; 409 until the run has ended."""
        run = _find(request, run_id)
        if run.meta is None:
            raise RunConflictError("The run has not ended yet.", "not_ended")
        return Response(results_document(run))


class CancelRunView(KeyedView):
    required_scopes = {"POST": Scope.ADMIN}

    @extend_schema(
        request=None, responses={202: RunResource, **dict.fromkeys((404, 409), ProblemResource)}
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Skip every step whose tool was not called yet; 409 when the run has ended."""
        run = _find(request, run_id)
        with noting(run.project_id, key_of(request), "plan_run.cancelled", str(run.pk)):
            if not cancel_run(run.project_id, run.id):
                raise RunConflictError("The run has already ended.", "ended")
        return Response(_describe_run(run), status=status.HTTP_202_ACCEPTED)


class ResolveStepView(KeyedView):
    required_scopes = {"POST": Scope.ADMIN}

    @extend_schema(
        operation_id="plans_runs_resolve_step",
        request=ResolveRequest,
        responses={202: QueuedRun, **dict.fromkeys((400, 404, 409), ProblemResource)},
    )
    def post(self, request: Request, run_id: UUID, position: int) -> Response:
        """Settle an `unknown_outcome` or poisoned step (0-based position); the run resumes."""
        run = _find(request, run_id)
        options = read_options(ResolveRequest, request.data)
        by = options.by or _key_name(request)
        action = f"plan_run.steps_{options.verdict}"
        with _refusing(), noting(run.project_id, key_of(request), action, str(run.pk)):
            new_key = options.new_key
            return _accept(resolve_steps(run.pk, [position], options.verdict, by, new_key=new_key))


class RerunView(KeyedView):
    required_scopes = {"POST": Scope.ADMIN}

    @extend_schema(
        request=RerunRequest,
        responses={202: QueuedRun, **dict.fromkeys((400, 404, 409), ProblemResource)},
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Queue a new run of the same plan, from its beginning or from one step on."""
        run = _find(request, run_id)
        options = read_options(RerunRequest, request.data)
        by = options.by or _key_name(request)
        with _refusing(), noting(run.project_id, key_of(request), "plan_run.repeated", str(run.pk)):
            return _accept(rerun(run.pk, options.from_position, by=by))


def _find(request: Request, run_id: UUID) -> Run:
    return get_object_or_404(Run, project_id=project_of(request).pk, pk=run_id)


def _key_name(request: Request) -> str:
    return f"key {key_of(request).key_id}"


def _accept(run: Run) -> Response:
    body = QueuedRun.dump({**vars(run), "url": reverse("api_plans_run", args=[run.id])})
    return Response(body, status=status.HTTP_202_ACCEPTED)


def _describe_run(run: Run) -> Json:
    # Stored rows are validated each time they are shown.
    violations = check_results(run) if run.meta is not None else []
    computed = {"results": results_of(run), "contract_violations": violations}
    return RunResource.dump({**vars(run), **computed})


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except RunRefusedError as error:
        refusal = NotFound if error.code in _NOT_FOUND else RunConflictError
        raise refusal(str(error), error.code) from error
