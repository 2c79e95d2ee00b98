"""/api/v1/lab: parsing one answer, replaying stored samples."""

from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from pydantic import Field
from rest_framework.request import Request
from rest_framework.response import Response

from agents.goals.bodies import RefusedGoal, read_body, refusing
from agents.goals.requests import ParseRequest, ReplayRequest, read_request
from agents.lab.parse_lab import ParseTarget, Settings
from agents.lab.samples import Replay, UnknownTargetError, find_target, key_for, replay_group
from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, project_of
from diagnostics.accounts.models import Project
from diagnostics.failures.models import FailureGroup
from diagnostics.ingest.schemas import SchemaFaultError
from diagnostics.rest.bodies import InvalidBodyError
from diagnostics.rest.resources import BODY_PROBLEMS, ProblemResource, Resource
from diagnostics.selection.fields import RANGES
from failsoft.retry.answers import parse_answer


class PlaceResource(Resource):
    """Why an answer is refused, and where: line and column count from 1."""

    type: str
    line: int | None
    column: int | None
    message: str


class ParsedResource(Resource):
    """The verdict of the `parse` command."""

    ok: bool
    value: Any | None
    repairs: list[Any]
    coerced: list[Any]
    error: PlaceResource | None


class ParseView(KeyedView):
    required_scopes = {"POST": Scope.READ}

    @extend_schema(
        operation_id="lab_parse",
        request=ParseRequest,
        responses={200: ParsedResource, 422: ProblemResource, **BODY_PROBLEMS},
    )
    def post(self, request: Request) -> Response:
        """Parse one answer; 200 for any verdict."""
        with refusing():
            parse_request = read_request(ParseRequest, read_body(request))
        verdict = parse_answer(
            parse_request.raw, parse_request.expected, parse_request.finish_reason
        )
        return Response(ParsedResource.dump(verdict))


COUNTS = ("total", "recovered", "share", "cut", "cut_recovered", "without_text")


class ReplayedResource(Resource):
    """One sample, parsed again; it was refused as `was`."""

    event_id: UUID
    occurred_at: datetime
    model: str | None
    was: str
    ok: bool
    error_type: str | None
    is_cut: bool = Field(description="may have lost its end when it was kept")
    errors: list[Any]
    repairs: list[Any]
    coerced: list[Any]


class ReplayResource(Resource):
    """How many samples would be recovered; cut ones are counted separately."""

    failure: int
    schema_name: str = Field(alias="schema")
    total: int = Field(description="samples that were kept whole")
    recovered: int = Field(description="of total")
    share: float | None
    low: float = Field(description="of the 95 % interval (Wilson)")
    high: float
    cut: int
    cut_recovered: int
    without_text: int
    samples: list[ReplayedResource]


class ReplayView(KeyedView):
    required_scopes = {"POST": Scope.READ}

    @extend_schema(
        operation_id="lab_replay",
        request=ReplayRequest,
        responses={200: ReplayResource, 404: ProblemResource, 422: RefusedGoal, **BODY_PROBLEMS},
    )
    def post(self, request: Request) -> Response:
        """Parse the samples of a failure with a schema and settings."""
        with refusing():
            replay_request = read_request(ReplayRequest, read_body(request))
        project = project_of(request)
        group = get_object_or_404(FailureGroup, project=project, pk=replay_request.failure)
        target = _target(project, group, replay_request)
        until = clock.now()
        since = until - RANGES[replay_request.range]
        settings = Settings(replay_request.recover, replay_request.lenient)
        replay = replay_group(group, since, until, target, settings)
        return Response(_describe(group, target, replay))


def _target(project: Project, group: FailureGroup, request: ReplayRequest) -> ParseTarget:
    key = request.expected or key_for(project.pk, group.schema, group.node)
    try:
        return find_target(project.pk, key, request.json_schema)
    except UnknownTargetError as error:
        raise _refusal("/schema", "unknown_schema", str(error)) from error
    except SchemaFaultError as error:
        path = f"/json_schema{error.path}"
        raise _refusal(path, error.code, error.message) from error


def _refusal(path: str, code: str, message: str) -> InvalidBodyError:
    return InvalidBodyError([{"path": path, "code": code, "message": message}])


def _describe(group: FailureGroup, target: ParseTarget, replay: Replay) -> dict[str, Any]:
    low, high = replay.interval
    samples = [
        {
            **vars(row.event),
            **asdict(row.reading),
            "ok": row.reading.ok,
            "was": row.was,
            "is_cut": row.is_cut,
        }
        for row in replay.rows
    ]
    counts = {name: getattr(replay, name) for name in COUNTS}
    summary = {"failure": group.pk, "schema": target.label, "low": low, "high": high}
    return ReplayResource.dump({**summary, **counts, "samples": samples})
