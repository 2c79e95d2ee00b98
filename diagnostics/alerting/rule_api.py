"""/api/v1/alert-rules: what is watched, and when a rule would have fired."""

from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, key_of, project_of
from diagnostics.alerting.backtests import DAYS, MOST_DAYS, BackTest, back_test
from diagnostics.alerting.incident_actions import archive_rule
from diagnostics.alerting.incident_api import fault
from diagnostics.alerting.incident_shapes import person_name
from diagnostics.alerting.past import UntestableError
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.alerting.rule_rows import GIVEN, RuleError, change_rule, create_rule, live_rules
from diagnostics.alerting.rules import ALLOWED
from diagnostics.alerting.signals import Signal
from diagnostics.rest.bodies import InvalidBodyError, read_fields
from diagnostics.rest.examples import answered, asked
from diagnostics.rest.openapi import REFUSALS, ROW_PROBLEMS


class GivenRuleSerializer(serializers.Serializer[Any]):
    """What a rule is told; what is left out is as usual."""

    name = serializers.CharField(max_length=200)
    filter = serializers.CharField(
        required=False, help_text="a query string on environment, node, provider, model"
    )
    group_by = serializers.ListField(child=serializers.CharField(), required=False)
    signal = serializers.ChoiceField(list(Signal))
    detector = serializers.ChoiceField(list(ALLOWED))
    parameters = serializers.DictField(
        required=False, help_text="limit; count, seconds; budget, factor; seconds"
    )
    severity = serializers.CharField(required=False, help_text="info, warning, critical")
    for_seconds = serializers.IntegerField(required=False)
    clear_seconds = serializers.IntegerField(required=False)
    no_data = serializers.ChoiceField(["keep", "clear", "fire"], required=False)
    no_data_seconds = serializers.IntegerField(required=False)
    is_latching = serializers.BooleanField(required=False)
    routing = serializers.ListField(child=serializers.IntegerField(), required=False)
    renotify_seconds = serializers.IntegerField(required=False, allow_null=True)
    escalate_seconds = serializers.IntegerField(required=False, allow_null=True)
    escalation = serializers.ListField(child=serializers.IntegerField(), required=False)
    is_enabled = serializers.BooleanField(required=False)


class RuleSerializer(GivenRuleSerializer):
    """A rule as it is kept."""

    id = serializers.IntegerField()
    version = serializers.IntegerField()
    standard = serializers.CharField(allow_null=True, help_text="out of the box")
    owner = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class RuleListSerializer(serializers.Serializer[Any]):
    """All rules of a project, by name."""

    items = RuleSerializer(many=True)


class TriedRuleSerializer(GivenRuleSerializer):
    """A rule to try on the past."""

    name = serializers.CharField(required=False)
    days = serializers.IntegerField(required=False, help_text="1 to 90, 30 unless told")


class WouldFireSerializer(serializers.Serializer[Any]):
    """One alarm that would have been raised."""

    slice = serializers.DictField(child=serializers.CharField(allow_null=True))
    at = serializers.DateTimeField()
    onset = serializers.DateTimeField()
    cleared = serializers.DateTimeField(allow_null=True)
    k = serializers.IntegerField()
    n = serializers.IntegerField()


class BackTestSerializer(serializers.Serializer[Any]):
    """When a rule would have fired; `grains` says from when on it was looked at how finely."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    slices = serializers.IntegerField()
    looks = serializers.IntegerField()
    grains = serializers.DictField(child=serializers.DateTimeField())
    fires = WouldFireSerializer(many=True)


def describe_rule(row: AlertRule) -> dict[str, Any]:
    """Return a rule in the wire format."""
    return {
        "id": row.pk,
        **{name: getattr(row, name) for name in GIVEN},
        "version": row.version,
        "standard": row.standard,
        "owner": person_name(row.owner),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def describe_back_test(found: BackTest) -> dict[str, Any]:
    """Return a back-test in the wire format."""
    names = ("slice", "at", "onset", "cleared", "k", "n")
    return {
        "since": found.since,
        "until": found.until,
        "slices": found.slices,
        "looks": found.looks,
        "grains": dict(found.grains),
        "fires": [{name: getattr(one, name) for name in names} for one in found.fires],
    }


_GIVEN_RULE: dict[str, Any] = {
    "name": "Haiku above 10 %",
    "filter": "provider=anthropic",
    "group_by": ["model"],
    "signal": "degraded_ratio",
    "detector": "threshold",
    "parameters": {"limit": 0.1},
    "severity": "critical",
}
_RULE = {
    **_GIVEN_RULE,
    "id": 3,
    "for_seconds": 0,
    "clear_seconds": 0,
    "no_data": "clear",
    "no_data_seconds": 21600,
    "is_latching": False,
    "routing": [],
    "renotify_seconds": None,
    "escalate_seconds": None,
    "escalation": [],
    "is_enabled": True,
    "version": 1,
    "standard": None,
    "owner": None,
    "created_at": "2026-11-20T08:00:00Z",
    "updated_at": "2026-11-20T08:00:00Z",
}
_FIRE = {
    "slice": {"model": "claude-haiku-4"},
    "at": "2026-11-21T15:00:00Z",
    "onset": "2026-11-21T14:00:00Z",
    "cleared": "2026-11-21T19:00:00Z",
    "k": 31,
    "n": 120,
}
_BACK_TEST = {
    "since": "2026-10-22T16:00:00Z",
    "until": "2026-11-21T16:00:00Z",
    "slices": 2,
    "looks": 1992,
    "grains": {"hour": "2026-10-22T16:00:00Z", "10 minutes": "2026-11-19T18:00:00Z"},
    "fires": [_FIRE],
}
RULES = answered("one rule", {"items": [_RULE]}, 200)
RULE = answered("a rule as kept", _RULE, 200, 201)
NEW_RULE = asked("a threshold for one provider", _GIVEN_RULE)
CHANGED_RULE = asked("a higher limit", {"parameters": {"limit": 0.15}})
TRIED_RULE = asked("a rule to try", {**_GIVEN_RULE, "days": 30})
BACK_TESTED = answered("it would have fired once", _BACK_TEST, 200)


class AlertRulesView(KeyedView):
    """The rules of the key's project."""

    required_scopes: ClassVar[dict[str, Scope]] = {
        "GET": Scope.READ,
        "POST": Scope.ADMIN,
        "OPTIONS": Scope.READ,
    }

    @extend_schema(
        operation_id="alert_rules_list",
        examples=[RULES],
        responses={200: RuleListSerializer, **ROW_PROBLEMS},
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


class AlertRuleView(KeyedView):
    """One rule."""

    required_scopes: ClassVar[dict[str, Scope]] = {
        "GET": Scope.READ,
        "PATCH": Scope.ADMIN,
        "DELETE": Scope.ADMIN,
        "OPTIONS": Scope.READ,
    }

    @extend_schema(
        operation_id="alert_rules_retrieve",
        examples=[RULE],
        responses={200: RuleSerializer, **ROW_PROBLEMS},
    )
    def get(self, request: Request, rule_id: int) -> Response:
        """Show a rule."""
        return Response(describe_rule(_find(request, rule_id)))

    @extend_schema(
        operation_id="alert_rules_update",
        request=GivenRuleSerializer(partial=True),
        examples=[CHANGED_RULE, RULE],
        responses={200: RuleSerializer, **REFUSALS, **ROW_PROBLEMS},
    )
    def patch(self, request: Request, rule_id: int) -> Response:
        """Change fields of a rule; its version grows when it judges otherwise."""
        row = _find(request, rule_id)
        try:
            row = change_rule(row, read_fields(request._request), key_of(request))
        except RuleError as error:
            raise InvalidBodyError(faults_of(error)) from error
        return Response(describe_rule(row))

    @extend_schema(operation_id="alert_rules_destroy", responses={204: None, **ROW_PROBLEMS})
    def delete(self, request: Request, rule_id: int) -> Response:
        """Delete a rule: what it fires for ends, what it found stays."""
        archive_rule(_find(request, rule_id), key_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class BackTestView(KeyedView):
    """Rules on the past."""

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
    """Return the faults of a rule as those of a body."""
    return [fault(f"/{name.replace('.', '/')}", why) for name, why in error.faults.items()]


def _find(request: Request, rule_id: int) -> AlertRule:
    rows = live_rules(project_of(request).pk).select_related("owner")
    return get_object_or_404(rows, pk=rule_id)
