"""Incidents, rules, back-tests and silences in the wire format, with examples."""

from typing import Any

from rest_framework import serializers

from diagnostics.alerts.backtesting import BackTest
from diagnostics.alerts.rules import GIVEN
from diagnostics.api.examples import answered, asked, page
from diagnostics.core.alerting.signals import Signal
from diagnostics.models import (
    AlertRule,
    Incident,
    IncidentNote,
    IncidentSlice,
    Silence,
    Transition,
)


class IncidentSliceSerializer(serializers.Serializer[Any]):
    """One slice of a rule in an incident; `k` bad ones of `n` when it fired."""

    rule_id = serializers.IntegerField()
    rule = serializers.CharField()
    rule_version = serializers.IntegerField()
    slice = serializers.DictField(child=serializers.CharField(allow_null=True))
    severity = serializers.CharField(help_text="info, warning, critical")
    onset = serializers.DateTimeField()
    fired_at = serializers.DateTimeField()
    cleared_at = serializers.DateTimeField(allow_null=True)
    k = serializers.IntegerField()
    n = serializers.IntegerField()
    value = serializers.FloatField()
    bound = serializers.FloatField()
    baseline = serializers.FloatField(allow_null=True)


class IncidentSerializer(serializers.Serializer[Any]):
    """An incident; times are null until it happened."""

    id = serializers.IntegerField()
    title = serializers.CharField()
    state = serializers.CharField(help_text="open, acknowledged, resolved")
    severity = serializers.CharField(help_text="info, warning, critical")
    onset = serializers.DateTimeField(help_text="since when")
    fired_at = serializers.DateTimeField()
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    acknowledged_by = serializers.CharField(allow_null=True)
    cleared_at = serializers.DateTimeField(allow_null=True)
    assignee = serializers.CharField(allow_null=True)
    cause = serializers.CharField(allow_null=True, help_text="of the verdict")
    cause_value = serializers.CharField(allow_null=True)
    sentence = serializers.CharField(allow_null=True, help_text="of the verdict")
    resolution_cause = serializers.CharField(
        allow_null=True, help_text="as a person said"
    )
    tracker_url = serializers.CharField(allow_null=True)
    filter = serializers.CharField(allow_blank=True, help_text="the affected calls")
    is_backfilled = serializers.BooleanField()


class IncidentEntrySerializer(serializers.Serializer[Any]):
    """One line of the timeline: a transition or a note."""

    at = serializers.DateTimeField()
    kind = serializers.CharField()
    by = serializers.CharField(allow_null=True)
    text = serializers.CharField(allow_null=True)


class WholeIncidentSerializer(IncidentSerializer):
    """An incident with all there is about it."""

    verdict = serializers.DictField(help_text="when it fired; as /api/v1/verdict")
    verdict_now = serializers.DictField()
    slices = IncidentSliceSerializer(many=True)
    timeline = IncidentEntrySerializer(many=True)


class IncidentPageSerializer(serializers.Serializer[Any]):
    """A page of incidents, latest first."""

    items = IncidentSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class ResolveIncidentSerializer(serializers.Serializer[Any]):
    """Why it is over."""

    cause = serializers.CharField(
        default="other", help_text=", ".join(Incident.Cause.values)
    )
    text = serializers.CharField(required=False)


class CommentIncidentSerializer(serializers.Serializer[Any]):
    """A comment."""

    text = serializers.CharField()


class GivenRuleSerializer(serializers.Serializer[Any]):
    """What a rule is told; what is left out is as usual."""

    name = serializers.CharField(max_length=200)
    filter = serializers.CharField(
        required=False, help_text="a query string on environment, node, provider, model"
    )
    group_by = serializers.ListField(child=serializers.CharField(), required=False)
    signal = serializers.ChoiceField(list(Signal))
    detector = serializers.ChoiceField(AlertRule.Detector.values)
    parameters = serializers.DictField(
        required=False, help_text="limit; count, seconds; budget, factor; seconds"
    )
    severity = serializers.CharField(
        required=False, help_text="info, warning, critical"
    )
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


class GivenSilenceSerializer(serializers.Serializer[Any]):
    """What is to be quiet until when; without a rule and a filter: everything."""

    rule_id = serializers.IntegerField(required=False, allow_null=True)
    filter = serializers.CharField(required=False, allow_blank=True)
    starts_at = serializers.DateTimeField(required=False, help_text="now unless told")
    ends_at = serializers.DateTimeField()
    reason = serializers.CharField(required=False, allow_blank=True)


class SilenceSerializer(GivenSilenceSerializer):
    """A silence as it is kept."""

    id = serializers.IntegerField()
    created_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class SilenceListSerializer(serializers.Serializer[Any]):
    """The silences that are on or to come, the first to end first."""

    items = SilenceSerializer(many=True)


def describe_incident(row: Incident) -> dict[str, Any]:
    """Give an incident in the wire format."""
    return {
        "id": row.pk,
        "title": row.title,
        "state": row.state,
        "severity": row.severity,
        "onset": row.onset,
        "fired_at": row.fired_at,
        "acknowledged_at": row.acknowledged_at,
        "acknowledged_by": _person(row.acknowledged_by),
        "cleared_at": row.cleared_at,
        "assignee": _person(row.assignee),
        "cause": row.cause or None,
        "cause_value": row.cause_value or None,
        "sentence": row.verdict.get("sentence"),
        "resolution_cause": row.resolution_cause,
        "tracker_url": row.tracker_url or None,
        "filter": row.filter,
        "is_backfilled": row.is_backfilled,
    }


def describe_whole_incident(row: Incident) -> dict[str, Any]:
    """Give an incident with its verdicts, slices and timeline."""
    transitions = row.transitions.select_related("by").order_by("at", "pk")
    notes = row.notes.select_related("by").order_by("at", "pk")
    lines = [*map(_transition, transitions), *map(_note, notes)]
    slices = row.slices.select_related("rule").order_by("pk")
    return {
        **describe_incident(row),
        "verdict": row.verdict,
        "verdict_now": row.verdict_now,
        "slices": [_slice(one) for one in slices],
        "timeline": sorted(lines, key=lambda line: line["at"]),
    }


def describe_rule(row: AlertRule) -> dict[str, Any]:
    """Give a rule in the wire format."""
    return {
        "id": row.pk,
        **{name: getattr(row, name) for name in GIVEN},
        "version": row.version,
        "standard": row.standard,
        "owner": _person(row.owner),
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


def describe_silence(row: Silence) -> dict[str, Any]:
    """Give a silence in the wire format."""
    names = ("id", "rule_id", "filter", "starts_at", "ends_at", "reason", "created_at")
    told = {name: getattr(row, name) for name in names}
    return {**told, "created_by": _person(row.created_by)}


def _person(user: Any) -> str | None:  # noqa: ANN401 - a user, or nobody
    return user.get_username() if user is not None else None


def _transition(row: Transition) -> dict[str, Any]:
    return {"at": row.at, "kind": row.kind, "by": _person(row.by), "text": None}


def _note(row: IncidentNote) -> dict[str, Any]:
    return {"at": row.at, "kind": row.kind, "by": _person(row.by), "text": row.text}


def _slice(row: IncidentSlice) -> dict[str, Any]:
    names = [
        name for name in IncidentSliceSerializer._declared_fields if name != "rule"
    ]
    return {**{name: getattr(row, name) for name in names}, "rule": row.rule.name}


_INCIDENT: dict[str, Any] = {
    "id": 12,
    "title": "anthropic/claude-haiku-4, next_step, prod",
    "state": "acknowledged",
    "severity": "warning",
    "onset": "2026-11-21T14:31:00Z",
    "fired_at": "2026-11-21T14:36:00Z",
    "acknowledged_at": "2026-11-21T14:38:12Z",
    "acknowledged_by": "ada",
    "cleared_at": None,
    "assignee": "ada",
    "cause": "model",
    "cause_value": "anthropic/claude-haiku-4",
    "sentence": "Degrading since 14:31: anthropic/claude-haiku-4, 31 % of 412 runs.",
    "resolution_cause": None,
    "tracker_url": None,
    "filter": "provider=anthropic&model=claude-haiku-4",
    "is_backfilled": False,
}
_SLICE = {
    "rule_id": 1,
    "rule": "Worse than usual",
    "rule_version": 1,
    "slice": {"provider": "anthropic", "model": "claude-haiku-4"},
    "severity": "warning",
    "onset": "2026-11-21T14:31:00Z",
    "fired_at": "2026-11-21T14:36:00Z",
    "cleared_at": None,
    "k": 9,
    "n": 24,
    "value": 11.2,
    "bound": 10.4,
    "baseline": 0.04,
}
_LINE = {"at": "2026-11-21T14:36:00Z", "kind": "fired", "by": None, "text": None}
_WHOLE = {
    **_INCIDENT,
    "verdict": {"state": "degrading", "cause": "model"},
    "verdict_now": {"state": "degrading", "cause": "model"},
    "slices": [_SLICE],
    "timeline": [_LINE],
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
_GIVEN_SILENCE = {
    "filter": "model=claude-haiku-4",
    "ends_at": "2026-11-21T18:00:00Z",
    "reason": "the provider knows",
}
_SILENCE = {
    **_GIVEN_SILENCE,
    "id": 5,
    "rule_id": None,
    "starts_at": "2026-11-21T16:00:00Z",
    "created_at": "2026-11-21T16:00:00Z",
    "created_by": None,
}
INCIDENTS_PAGE = answered("one incident", page(_INCIDENT), 200)
INCIDENT = answered("an incident with its timeline", _WHOLE, 200)
RESOLVE = asked("it was our prompt", {"cause": "prompt", "text": "Rolled back."})
COMMENT = asked("a comment", {"text": "The provider confirms."})
RULES = answered("one rule", {"items": [_RULE]}, 200)
RULE = answered("a rule as kept", _RULE, 200, 201)
NEW_RULE = asked("a threshold for one provider", _GIVEN_RULE)
CHANGED_RULE = asked("a higher limit", {"parameters": {"limit": 0.15}})
TRIED_RULE = asked("a rule to try", {**_GIVEN_RULE, "days": 30})
BACK_TESTED = answered("it would have fired once", _BACK_TEST, 200)
NEW_SILENCE = asked("one model until six", _GIVEN_SILENCE)
SILENCE = answered("a silence as kept", _SILENCE, 200, 201)
SILENCES = answered("one silence", {"items": [_SILENCE]}, 200)
