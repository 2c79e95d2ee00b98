"""Deciding what became of a step, and running a plan again."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from diagnostics.access.authentication import ApiKeyAuthentication, HasScope, key_of
from diagnostics.core.api_keys import Scope
from diagnostics.serializers import ProblemSerializer
from plans.api.runs import describe_queued, find_run
from plans.rerunning import RerunRefusedError, rerun
from plans.resolving import ResolutionRefusedError, Verdict, resolve_step
from plans.serializers import QueuedRunSerializer

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


class ResolveStepView(APIView):
    """One step whose outcome nobody knows."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
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


class RerunView(APIView):
    """A run that is to be repeated."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
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
