"""/api/v1/fix-patterns: what was learned from recoveries, and what is decided about it."""

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.fix_patterns import Mode, PatternStatus
from agents.fix_patterns.models import FixPattern, FixPolicy
from agents.fix_patterns.records import (
    FirstPassShare,
    KnownPattern,
    known_pattern,
    known_patterns,
    rules_of,
)
from agents.fix_patterns.store import DECISIONS, set_mode
from agents.goals.bodies import RefusedGoal, actor_of, read_body
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import (
    KeyedView,
    project_of,
)
from diagnostics.rest.bodies import InvalidBodyError
from diagnostics.rest.openapi import ProblemSerializer
from diagnostics.store.choices import choices_of

PROBLEMS = {404: ProblemSerializer}
VERB = OpenApiParameter("verb", str, OpenApiParameter.PATH, enum=list(DECISIONS))


class ShareSerializer(serializers.Serializer[FirstPassShare]):
    """Good first answers among so many; `rate` and `interval` are null without runs."""

    good = serializers.IntegerField()
    runs = serializers.IntegerField()
    rate = serializers.FloatField(allow_null=True)
    interval = serializers.ListField(
        child=serializers.FloatField(), allow_null=True, help_text="95 %, low and high"
    )


class FixPatternSerializer(serializers.Serializer[KnownPattern]):
    """One fix pattern; `says` is the sentence a prompt is told."""

    id = serializers.IntegerField(source="row.pk")
    schema = serializers.CharField(source="row.schema")
    error_class = serializers.CharField(source="row.error_class")
    code = serializers.CharField(source="row.code")
    pointer = serializers.CharField(source="row.pointer")
    change = serializers.CharField(source="row.change")
    before = serializers.CharField(source="row.before")
    after = serializers.CharField(source="row.after")
    says = serializers.CharField()
    state = serializers.ChoiceField(list(PatternStatus), source="standing")
    successes = serializers.IntegerField(source="row.successes")
    needed = serializers.IntegerField(help_text="successes that make it a hint")
    last_success_at = serializers.DateTimeField(source="row.last_success_at")
    expires_at = serializers.DateTimeField()
    told = ShareSerializer()
    withheld = ShareSerializer()
    decision = serializers.CharField(source="row.decision", allow_null=True)
    decided_by = serializers.CharField(source="row.decided_by")
    decided_at = serializers.DateTimeField(source="row.decided_at", allow_null=True)


class FixPolicySerializer(serializers.Serializer[Any]):
    """A project's policy."""

    mode = serializers.ChoiceField(choices_of(FixPolicy.Mode))


class FixPatternListSerializer(FixPolicySerializer):
    """All fix patterns of a project, with its policy."""

    items = FixPatternSerializer(many=True)


class FixPatternsView(KeyedView):
    """The fix patterns of the key's project."""

    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(operation_id="fix_patterns_list", responses=FixPatternListSerializer)
    def get(self, request: Request) -> Response:
        """List them: what waits for an approval first, then those that are used."""
        project_id = project_of(request).pk
        rules = rules_of(project_id)
        found = {"mode": rules.mode, "items": known_patterns(project_id, rules)}
        return Response(FixPatternListSerializer(found).data)


class FixPolicyView(KeyedView):
    """Whether and how the key's project uses fix patterns."""

    required_scopes = {"PUT": Scope.ADMIN, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="fix_patterns_policy",
        request=FixPolicySerializer,
        responses={200: FixPolicySerializer, 422: RefusedGoal},
    )
    def put(self, request: Request) -> Response:
        """Set the policy: off, auto or approve."""
        mode = _read_mode(read_body(request))
        set_mode(project_of(request).pk, mode, actor_of(request))
        return Response({"mode": mode})


class FixDecisionView(KeyedView):
    """What is decided about one fix pattern."""

    required_scopes = {"POST": Scope.ADMIN, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="fix_patterns_decide",
        parameters=[VERB],
        request=None,
        responses={200: FixPatternSerializer, **PROBLEMS},
    )
    def post(self, request: Request, pattern_id: int, verb: str) -> Response:
        """Approve, reject or expire it."""
        if verb not in DECISIONS:
            raise Http404
        project = project_of(request)
        row = get_object_or_404(FixPattern, project=project, pk=pattern_id)
        DECISIONS[verb](row, actor_of(request))
        row.refresh_from_db()
        known = known_pattern(row, rules_of(project.pk))
        return Response(FixPatternSerializer(known).data)


def _read_mode(body: dict[str, Any]) -> Mode:
    """The mode of a body that says nothing else."""
    errors = [
        {"path": f"/{key}", "code": "unknown", "message": "there is no such field"}
        for key in body
        if key != "mode"
    ]
    if body.get("mode") not in list(Mode):
        message = f"expected one of {', '.join(Mode)}"
        errors.append({"path": "/mode", "code": "choice", "message": message})
    if errors:
        raise InvalidBodyError(errors, errors[0]["code"])
    return Mode(body["mode"])
