"""Alert rules and back-tests in the wire format, with examples."""

from typing import Any

from rest_framework import serializers

from diagnostics.alerts.backtesting import BackTest
from diagnostics.alerts.rules import GIVEN
from diagnostics.api.examples import answered, asked
from diagnostics.api.incident_shapes import person_name
from diagnostics.core.alerting.parameters import ALLOWED
from diagnostics.core.alerting.signals import Signal
from diagnostics.models import AlertRule


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
    """Give a rule in the wire format."""
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
    """Give a back-test in the wire format."""
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
