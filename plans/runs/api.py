"""POST /api/v1/plans/runs, and what became of a run."""

from typing import Any
from uuid import UUID

from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import (
    KeyedView,
    key_of,
    project_of,
)
from diagnostics.redaction.redactor import redact_name
from diagnostics.rest.openapi import BODY_PROBLEMS, ProblemSerializer
from failsoft.plans.contract import MAX_PAYLOAD_BYTES, PlanPayload
from plans.bodies import ContractViolatedError, describe_violations, read_json_body
from plans.models.run import Run
from plans.runs.records import check_results, results_document, results_of
from plans.runs.reruns import RerunRefusedError, rerun
from plans.runs.shapes import (
    QueuedRunSerializer,
    RefusedPlanSerializer,
    RunResultsSerializer,
    RunSerializer,
)
from plans.runs.submission import InvalidPlanError, cancel_run, submit_run
from plans.runs.unknown_outcomes import ResolutionRefusedError, Verdict, resolve_step

_MAX_CORRELATION_ID = 200
_CORRELATION_ID = OpenApiParameter(
    "correlation_id", str, description="Your name for the run, up to 200 characters."
)
_RUNNER = OpenApiParameter(
    "runner",
    str,
    enum=Run.Runner.values,
    description="Who executes the steps: one task (the default), or all workers.",
)
_STRICT_DEGRADED = OpenApiParameter(
    "strict_degraded",
    bool,
    description="Skip steps that depend on an output which its tool calls degraded.",
)
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


class RunsView(KeyedView):
    """Plans handed in directly, without a planner."""

    required_scopes = {"POST": Scope.ADMIN, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="plans_runs_create",
        parameters=[_CORRELATION_ID, _RUNNER, _STRICT_DEGRADED],
        request=PlanPayload,
        responses={
            202: QueuedRunSerializer,
            422: RefusedPlanSerializer,
            **BODY_PROBLEMS,
        },
    )
    def post(self, request: Request) -> Response:
        """Validate a plan payload and queue its run."""
        correlation_id = _read_correlation_id(request)
        runner, strict_degraded = _read_runner(request), _read_strict_degraded(request)
        payload, text = read_json_body(
            request._request,  # the raw body, unparsed
            MAX_PAYLOAD_BYTES,
        )
        try:
            run = submit_run(
                project_of(request).pk,
                payload,
                correlation_id,
                runner=runner,
                strict_degraded=strict_degraded,
            )
        except InvalidPlanError as error:
            faults = describe_violations(text, error.violations)
            raise ContractViolatedError(faults) from error
        return Response(describe_queued(run), status=status.HTTP_202_ACCEPTED)


class RunView(KeyedView):
    """One run of the key's project."""

    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="plans_runs_retrieve",
        responses={200: RunSerializer, 404: ProblemSerializer},
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """Show a run, its rows so far, and whether they keep the contract."""
        return Response(_describe_run(find_run(request, run_id)))


class RunResultsView(KeyedView):
    """The results of a run as the contract writes them."""

    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="plans_runs_results",
        responses={
            200: RunResultsSerializer,
            **dict.fromkeys((404, 409), ProblemSerializer),
        },
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """Return the document that the results check takes; 409 until the run has ended."""
        run = find_run(request, run_id)
        if run.meta is None:
            problem = {"detail": "The run has not ended yet.", "code": "not_ended"}
            return Response(problem, status=status.HTTP_409_CONFLICT)
        return Response(results_document(run))


class CancelRunView(KeyedView):
    """Stopping a run."""

    required_scopes = {"POST": Scope.ADMIN, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="plans_runs_cancel",
        request=None,
        responses={
            202: RunSerializer,
            **dict.fromkeys((404, 409), ProblemSerializer),
        },
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Skip every step whose tool was not called yet; 409 when the run has ended."""
        run = find_run(request, run_id)
        if not cancel_run(run.project_id, run.id):
            problem = {"detail": "The run has already ended.", "code": "ended"}
            return Response(problem, status=status.HTTP_409_CONFLICT)
        return Response(_describe_run(run), status=status.HTTP_202_ACCEPTED)


def _read_correlation_id(request: Request) -> str | None:
    given = request.query_params.get("correlation_id")
    if given is None:
        return None
    if not given.strip() or "\0" in given or len(given) > _MAX_CORRELATION_ID:
        message = f"Between 1 and {_MAX_CORRELATION_ID} characters."
        raise ValidationError({"correlation_id": message})
    return redact_name(given)


def _read_runner(request: Request) -> str:
    given = request.query_params.get("runner", Run.Runner.INLINE.value)
    if given not in Run.Runner.values:
        known = " or ".join(Run.Runner.values)
        raise ValidationError({"runner": f"Expected {known}."})
    return given


def _read_strict_degraded(request: Request) -> bool:
    given = request.query_params.get("strict_degraded", "false")
    if given not in _BOOLEANS:
        raise ValidationError({"strict_degraded": "Expected true or false."})
    return _BOOLEANS[given]


def find_run(request: Request, run_id: UUID) -> Run:
    """Return the run if it is of the key's project; else it is not found."""
    run = Run.objects.filter(project_id=project_of(request).pk, pk=run_id).first()
    if run is None:
        raise Http404
    return run


def describe_queued(run: Run) -> dict[str, Any]:
    """Say where a run that was accepted is to be seen."""
    return {
        "run_id": run.id,
        "correlation_id": run.correlation_id,
        "contract_version": run.contract_version,
        "status": run.state,
        "url": reverse("api_plans_run", args=[run.id]),
    }


def _describe_run(run: Run) -> dict[str, Any]:
    # Stored rows are checked each time they are shown.
    violations = check_results(run) if run.meta is not None else []
    return {
        "run_id": run.id,
        "correlation_id": run.correlation_id,
        "cycle": run.cycle,
        "contract_version": run.contract_version,
        "runner": run.runner,
        "strict_degraded": run.strict_degraded,
        "release": run.release,
        "refused_reason": run.refused_reason,
        "rerun_of": run.rerun_of_id,
        "status": run.state,
        "task_status": run.task_status,
        "results": results_of(run),
        "contract_violations": [violation.as_dict() for violation in violations],
        "created_at": run.created_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
    }


_MAX_POSITION = 1_000_000
_NOT_FOUND = frozenset({"run_not_found", "step_not_found"})


class ResolveSerializer(serializers.Serializer[Any]):
    """What somebody who has looked says of a step."""

    verdict = serializers.ChoiceField(
        Verdict.choices,
        help_text="done: it counts as ok; not_done: it failed; resume: call it again",
    )
    by = serializers.CharField(max_length=200, required=False, default="", help_text="Who says so.")
    new_key = serializers.BooleanField(
        default=False, help_text="With resume: a new idempotency key for the call."
    )


class RerunSerializer(serializers.Serializer[Any]):
    """Where to begin."""

    from_position = serializers.IntegerField(
        min_value=0,
        max_value=_MAX_POSITION,
        required=False,
        allow_null=True,
        default=None,
        help_text="0-based place of the first step to run; the results before are kept.",
    )
    by = serializers.CharField(max_length=200, required=False, default="")


class ResolveStepView(KeyedView):
    """One step whose outcome nobody knows."""

    required_scopes = {"POST": Scope.ADMIN, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="plans_runs_resolve_step",
        request=ResolveSerializer,
        responses={
            202: QueuedRunSerializer,
            **dict.fromkeys((400, 404, 409), ProblemSerializer),
        },
    )
    def post(self, request: Request, run_id: UUID, position: int) -> Response:
        """Settle an `unknown_outcome` or poisoned step (0-based place); the run goes on."""
        run = find_run(request, run_id)
        given = _read(ResolveSerializer, request)
        try:
            found = resolve_step(
                run.pk,
                position,
                given["verdict"],
                given["by"] or _key_name(request),
                new_key=given["new_key"],
            )
        except ResolutionRefusedError as error:
            return _refuse(error.code, str(error))
        return Response(describe_queued(found), status=status.HTTP_202_ACCEPTED)


class RerunView(KeyedView):
    """A run that is to be repeated."""

    required_scopes = {"POST": Scope.ADMIN, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="plans_runs_rerun",
        request=RerunSerializer,
        responses={
            202: QueuedRunSerializer,
            **dict.fromkeys((400, 404, 409), ProblemSerializer),
        },
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Queue a new run of the same plan, from its beginning or from one step on."""
        run = find_run(request, run_id)
        given = _read(RerunSerializer, request)
        by = given["by"] or _key_name(request)
        try:
            made = rerun(run.pk, given["from_position"], by=by)
        except RerunRefusedError as error:
            return _refuse(error.code, str(error))
        return Response(describe_queued(made), status=status.HTTP_202_ACCEPTED)


def _read(kind: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    body = kind(data=request.data)
    body.is_valid(raise_exception=True)
    return dict(body.validated_data)


def _key_name(request: Request) -> str:
    """Name who asked when the body does not: the key, by its public part."""
    return f"key {key_of(request).key_id}"


def _refuse(code: str, text: str) -> Response:
    not_found = code in _NOT_FOUND
    refused = status.HTTP_404_NOT_FOUND if not_found else status.HTTP_409_CONFLICT
    return Response({"detail": text, "code": code}, status=refused)
