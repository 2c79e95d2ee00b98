"""/api/v1/alert-rules: what is watched, and when a rule would have fired."""

from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from diagnostics import clock
from diagnostics.access.authentication import (
    ApiKeyAuthentication,
    HasScope,
    key_of,
    project_of,
)
from diagnostics.alerts.backtesting import DAYS, MOST_DAYS, UntestableError, back_test
from diagnostics.alerts.incidents import archive_rule
from diagnostics.alerts.rules import RuleError, change_rule, create_rule, live_rules
from diagnostics.api.bodies import InvalidBodyError, read_fields
from diagnostics.api.incidents import fault
from diagnostics.api.openapi import REFUSALS
from diagnostics.api.rule_shapes import (
    BACK_TESTED,
    CHANGED_RULE,
    NEW_RULE,
    RULE,
    RULES,
    TRIED_RULE,
    BackTestSerializer,
    GivenRuleSerializer,
    RuleListSerializer,
    RuleSerializer,
    TriedRuleSerializer,
    describe_back_test,
    describe_rule,
)
from diagnostics.core.api_keys import Scope
from diagnostics.models import AlertRule
from diagnostics.serializers import ProblemSerializer

PROBLEMS = dict.fromkeys((401, 403, 404), ProblemSerializer)


class AlertRulesView(APIView):
    """The rules of the key's project."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes: ClassVar[dict[str, Scope]] = {
        "GET": Scope.READ,
        "POST": Scope.ADMIN,
        "OPTIONS": Scope.READ,
    }

    @extend_schema(
        operation_id="alert_rules_list",
        examples=[RULES],
        responses={200: RuleListSerializer, **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """List the rules by name."""
        rows = live_rules(project_of(request).pk).select_related("owner")
        return Response({"items": [describe_rule(row) for row in rows]})

    @extend_schema(
        operation_id="alert_rules_create",
        request=GivenRuleSerializer,
        examples=[NEW_RULE, RULE],
        responses={201: RuleSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Make a rule; 422 lists every field that is wrong."""
        key = key_of(request)
        try:
            row = create_rule(key.project_id, read_fields(request._request), key)
        except RuleError as error:
            raise InvalidBodyError(faults_of(error)) from error
        row.refresh_from_db()
        return Response(describe_rule(row), status=status.HTTP_201_CREATED)


class AlertRuleView(APIView):
    """One rule."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes: ClassVar[dict[str, Scope]] = {
        "GET": Scope.READ,
        "PATCH": Scope.ADMIN,
        "DELETE": Scope.ADMIN,
        "OPTIONS": Scope.READ,
    }

    @extend_schema(
        operation_id="alert_rules_retrieve",
        examples=[RULE],
        responses={200: RuleSerializer, **PROBLEMS},
    )
    def get(self, request: Request, rule_id: int) -> Response:
        """Show a rule."""
        return Response(describe_rule(_find(request, rule_id)))

    @extend_schema(
        operation_id="alert_rules_update",
        request=GivenRuleSerializer(partial=True),
        examples=[CHANGED_RULE, RULE],
        responses={200: RuleSerializer, **REFUSALS, **PROBLEMS},
    )
    def patch(self, request: Request, rule_id: int) -> Response:
        """Change fields of a rule; its version grows when it judges otherwise."""
        row = _find(request, rule_id)
        try:
            row = change_rule(row, read_fields(request._request), key_of(request))
        except RuleError as error:
            raise InvalidBodyError(faults_of(error)) from error
        return Response(describe_rule(row))

    @extend_schema(operation_id="alert_rules_destroy", responses={204: None, **PROBLEMS})
    def delete(self, request: Request, rule_id: int) -> Response:
        """Delete a rule: what it fires for ends, what it found stays."""
        archive_rule(_find(request, rule_id), key_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class BackTestView(APIView):
    """Rules on the past."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes: ClassVar[dict[str, Scope]] = {
        "POST": Scope.READ,
        "OPTIONS": Scope.READ,
    }

    @extend_schema(
        operation_id="alert_rules_backtest",
        request=TriedRuleSerializer,
        examples=[TRIED_RULE, BACK_TESTED],
        responses={200: BackTestSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Say when a rule would have fired in the last days; nothing is kept."""
        given = read_fields(request._request)
        days = given.pop("days", DAYS)
        if type(days) is not int or not 1 <= days <= MOST_DAYS:
            raise InvalidBodyError([fault("/days", f"a number from 1 to {MOST_DAYS}")])
        try:
            found = back_test(project_of(request).pk, given, clock.now(), days)
        except RuleError as error:
            raise InvalidBodyError(faults_of(error)) from error
        except UntestableError as error:
            raise InvalidBodyError([fault("/signal", str(error))]) from error
        return Response(describe_back_test(found))


def faults_of(error: RuleError) -> list[dict[str, Any]]:
    """Give the faults of a rule as those of a body."""
    return [fault(f"/{name.replace('.', '/')}", why) for name, why in error.faults.items()]


def _find(request: Request, rule_id: int) -> AlertRule:
    rows = live_rules(project_of(request).pk).select_related("owner")
    return get_object_or_404(rows, pk=rule_id)
