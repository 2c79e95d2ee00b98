"""Silences in the wire format, with examples."""

from typing import Any

from rest_framework import serializers

from diagnostics.api.examples import answered, asked
from diagnostics.api.incident_shapes import person_name
from diagnostics.models import Silence


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


def describe_silence(row: Silence) -> dict[str, Any]:
    """Give a silence in the wire format."""
    names = ("id", "rule_id", "filter", "starts_at", "ends_at", "reason", "created_at")
    told = {name: getattr(row, name) for name in names}
    return {**told, "created_by": person_name(row.created_by)}


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
NEW_SILENCE = asked("one model until six", _GIVEN_SILENCE)
SILENCE = answered("a silence as kept", _SILENCE, 200, 201)
SILENCES = answered("one silence", {"items": [_SILENCE]}, 200)
