"""POST /api/v1/plans/runs, and what became of a run."""

from typing import Any
from uuid import UUID

from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from diagnostics.access.authentication import ApiKeyAuthentication, HasScope, project_of
from diagnostics.api.openapi import describe_model
from diagnostics.core.api_keys import Scope
from diagnostics.redaction.redacting import redact_name
from diagnostics.serializers import ProblemSerializer
from plans.api.bodies import (
    ContractViolatedError,
    describe_violations,
    read_json_body,
)
from plans.core.contract import MAX_PAYLOAD_BYTES, PlanPayload
from plans.models import Run
from plans.reading import check_results, results_document, results_of
from plans.serializers import (
    QueuedRunSerializer,
    RefusedPlanSerializer,
    RunResultsSerializer,
    RunSerializer,
)
from plans.submitting import InvalidPlanError, cancel_run, submit_run

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


class RunsView(APIView):
    """Plans handed in directly, without a planner."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"POST": Scope.ADMIN, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="plans_runs_create",
        parameters=[_CORRELATION_ID, _RUNNER, _STRICT_DEGRADED],
        request={"application/json": describe_model(PlanPayload)},
        responses={
            202: QueuedRunSerializer,
            422: RefusedPlanSerializer,
            **dict.fromkeys((400, 401, 403, 413, 415), ProblemSerializer),
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


class RunView(APIView):
    """One run of the key's project."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="plans_runs_retrieve",
        responses={200: RunSerializer, 404: ProblemSerializer},
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """Show a run, its rows so far, and whether they keep the contract."""
        return Response(_describe_run(find_run(request, run_id)))


class RunResultsView(APIView):
    """The results of a run as the contract writes them."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="plans_runs_results",
        responses={
            200: RunResultsSerializer,
            **dict.fromkeys((404, 409), ProblemSerializer),
        },
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """Give the document that the results check takes; 409 until the run has ended."""
        run = find_run(request, run_id)
        if run.meta is None:
            problem = {"detail": "The run has not ended yet.", "code": "not_ended"}
            return Response(problem, status=status.HTTP_409_CONFLICT)
        return Response(results_document(run))


class CancelRunView(APIView):
    """Stopping a run."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
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
    # Stored rows are checked each time they are shown (S2-1, S2-3).
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
