"""/api/v1/fix-patterns: the patterns learned from recoveries, and decisions about them."""

from datetime import datetime

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import Field
from rest_framework.request import Request
from rest_framework.response import Response

from agents.fix_patterns.models import FixPattern
from agents.fix_patterns.status import PatternMode, PatternStatus
from agents.fix_patterns.store import DECISIONS, known_pattern, known_patterns, policy_of, set_mode
from agents.goals.bodies import RefusedGoal
from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, key_of, project_of
from diagnostics.rest.bodies import read_model
from diagnostics.rest.resources import ProblemResource, Resource

PROBLEMS = {404: ProblemResource}
VERB = OpenApiParameter("verb", str, OpenApiParameter.PATH, enum=list(DECISIONS))


class FirstPassShareResource(Resource):
    """Valid first answers of all runs; `rate` and `interval` are null without runs."""

    good: int
    runs: int
    rate: float | None
    interval: tuple[float, ...] | None = Field(description="95 %, low and high")


class FixPatternResource(Resource):
    """One fix pattern; `says` is its sentence in a prompt."""

    id: int
    schema_name: str = Field(alias="schema")
    error_class: str
    code: str
    pointer: str
    change: str
    before: str
    after: str
    says: str
    state: PatternStatus = Field(validation_alias="standing")
    successes: int
    needed: int = Field(description="successes that make it a hint")
    last_success_at: datetime
    expires_at: datetime
    told: FirstPassShareResource = Field(validation_alias="given")
    withheld: FirstPassShareResource
    decision: str | None
    decided_by: str
    decided_at: datetime | None


class FixPolicyResource(Resource):
    """A project's policy."""

    mode: PatternMode


class FixPolicyRequest(FixPolicyResource, extra="forbid"):
    """A project's new policy."""


class FixPatternListResource(FixPolicyResource):
    """All fix patterns of a project, with its policy."""

    items: list[FixPatternResource]


class FixPatternsView(KeyedView):
    required_scopes = {"GET": Scope.READ}

    @extend_schema(responses=FixPatternListResource)
    def get(self, request: Request) -> Response:
        """List them: those waiting for approval first, then active ones."""
        project_id = project_of(request).pk
        policy = policy_of(project_id)
        listing = {"mode": policy.mode, "items": known_patterns(project_id, policy)}
        return Response(FixPatternListResource.dump(listing))


class FixPolicyView(KeyedView):
    required_scopes = {"PUT": Scope.ADMIN}

    @extend_schema(
        operation_id="fix_patterns_policy",
        request=FixPolicyRequest,
        responses={200: FixPolicyResource, 422: RefusedGoal},
    )
    def put(self, request: Request) -> Response:
        """Set the policy: off, auto or approve."""
        mode = read_model(request._request, FixPolicyRequest).mode
        set_mode(project_of(request).pk, mode, key_of(request))
        return Response({"mode": mode})


class FixDecisionView(KeyedView):
    required_scopes = {"POST": Scope.ADMIN}

    @extend_schema(
        operation_id="fix_patterns_decide",
        parameters=[VERB],
        request=None,
        responses={200: FixPatternResource, **PROBLEMS},
    )
    def post(self, request: Request, pattern_id: int, verb: str) -> Response:
        """Approve, reject or expire it."""
        if verb not in DECISIONS:
            raise Http404
        project = project_of(request)
        row = get_object_or_404(FixPattern, project=project, pk=pattern_id)
        DECISIONS[verb](row, key_of(request))
        row.refresh_from_db()
        pattern = known_pattern(row, policy_of(project.pk), clock.now())
        return Response(FixPatternResource.dump(pattern))
