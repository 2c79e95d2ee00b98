"""Incidents in the wire format, with examples."""

from typing import Any

from rest_framework import serializers

from diagnostics.alerting.incident_models import Incident, IncidentNote, IncidentSlice, Transition
from diagnostics.rest.examples import answered, asked, page
from diagnostics.verdict.wording import worded


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
    resolution_cause = serializers.CharField(allow_null=True, help_text="as a person said")
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

    cause = serializers.CharField(default="other", help_text=", ".join(Incident.Cause.values))
    text = serializers.CharField(required=False)


class CommentIncidentSerializer(serializers.Serializer[Any]):
    """A comment."""

    text = serializers.CharField()


def describe_incident(row: Incident) -> dict[str, Any]:
    """Return an incident in the wire format."""
    return {
        "id": row.pk,
        "title": row.title,
        "state": row.state,
        "severity": row.severity,
        "onset": row.onset,
        "fired_at": row.fired_at,
        "acknowledged_at": row.acknowledged_at,
        "acknowledged_by": person_name(row.acknowledged_by),
        "cleared_at": row.cleared_at,
        "assignee": person_name(row.assignee),
        "cause": row.cause or None,
        "cause_value": row.cause_value or None,
        "sentence": worded(row.verdict).get("sentence"),
        "resolution_cause": row.resolution_cause,
        "tracker_url": row.tracker_url or None,
        "filter": row.filter,
        "is_backfilled": row.is_backfilled,
    }


def describe_whole_incident(row: Incident) -> dict[str, Any]:
    """Return an incident with its verdicts, slices and timeline."""
    transitions = row.transitions.select_related("by").order_by("at", "pk")
    notes = row.notes.select_related("by").order_by("at", "pk")
    lines = [*map(_transition, transitions), *map(_note, notes)]
    slices = row.slices.select_related("rule").order_by("pk")
    return {
        **describe_incident(row),
        "verdict": worded(row.verdict),
        "verdict_now": worded(row.verdict_now),
        "slices": [_slice(one) for one in slices],
        "timeline": sorted(lines, key=lambda line: line["at"]),
    }


def person_name(user: Any) -> str | None:  # noqa: ANN401 - a user, or nobody
    """Name who did it; None when nobody is known."""
    """Name who did it; None when nobody is known."""
    return user.get_username() if user is not None else None


def _transition(row: Transition) -> dict[str, Any]:
    return {"at": row.at, "kind": row.kind, "by": person_name(row.by), "text": None}


def _note(row: IncidentNote) -> dict[str, Any]:
    return {"at": row.at, "kind": row.kind, "by": person_name(row.by), "text": row.text}


def _slice(row: IncidentSlice) -> dict[str, Any]:
    names = [name for name in IncidentSliceSerializer._declared_fields if name != "rule"]
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
INCIDENTS_PAGE = answered("one incident", page(_INCIDENT), 200)
INCIDENT = answered("an incident with its timeline", _WHOLE, 200)
RESOLVE = asked("it was our prompt", {"cause": "prompt", "text": "Rolled back."})
COMMENT = asked("a comment", {"text": "The provider confirms."})
