"""What one writes first: a Django REST framework serializer and rows saved one by one.

It does the same work but for rollups and failure groups, which it leaves out: the key, every
field checked, redaction, duplicate or conflict by content hash, event and payload rows.
"""

import json
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.utils import timezone
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from diagnostics.accounts.api_keys import is_right_secret, parse_key
from diagnostics.accounts.authentication import KeyHolder
from diagnostics.accounts.models import ApiKey
from diagnostics.redaction.redactor import redact_json
from diagnostics.store.models import Event, EventIdentity, EventPayload

ERROR_TYPES = ("not_json", "schema_invalid", "truncated", "other")


class ErrorSerializer(serializers.Serializer[Any]):
    """One validation error."""

    path = serializers.CharField(max_length=4096, required=False, allow_null=True)
    code = serializers.CharField(max_length=200, required=False, allow_null=True)
    message = serializers.CharField(max_length=4096, required=False)


class EventSerializer(serializers.Serializer[Any]):
    """One event of the workload."""

    event_id = serializers.UUIDField()
    name = serializers.RegexField(r"^graph\.([a-z][a-z0-9_-]{0,62})\.([a-z_]+)$")
    occurred_at = serializers.DateTimeField()
    correlation_id = serializers.CharField(max_length=200)
    cycle = serializers.IntegerField(min_value=1)
    attempt = serializers.IntegerField(min_value=1, required=False)
    provider = serializers.CharField(max_length=200, required=False)
    model = serializers.CharField(max_length=200, required=False)
    schema = serializers.CharField(max_length=200, required=False)
    prompt_version = serializers.CharField(max_length=200, required=False)
    environment = serializers.CharField(max_length=200, required=False)
    source = serializers.CharField(max_length=200, required=False)  # type: ignore[assignment] # a field
    finish_reason = serializers.CharField(max_length=200, required=False)
    parse_error_type = serializers.ChoiceField(ERROR_TYPES, required=False)
    validation_errors = ErrorSerializer(many=True, required=False)
    raw_output_preview = serializers.CharField(required=False)
    latency_ms = serializers.IntegerField(min_value=0, required=False)
    input_tokens = serializers.IntegerField(min_value=0, required=False)
    output_tokens = serializers.IntegerField(min_value=0, required=False)


class PlainKeyAuthentication(BaseAuthentication):
    """Looks the key up, every time."""

    def authenticate(self, request: Request) -> tuple[KeyHolder, ApiKey]:
        text = request.headers.get("Authorization", "").partition(" ")[2]
        if presented := parse_key(text):
            key_id, secret = presented
            keys = ApiKey.objects.select_related("project")
            key = keys.filter(key_id=key_id, revoked_at=None).first()
            stored = bytes(key.secret_hash) if key else None
            if key is not None and is_right_secret(secret, stored):
                return KeyHolder(key), key
        raise AuthenticationFailed


class PlainEventsView(APIView):
    """POST /api/v1/events, plainly."""

    authentication_classes = (PlainKeyAuthentication,)
    permission_classes = (IsAuthenticated,)

    def post(self, request: Request) -> Response:
        serializer = EventSerializer(data=request.data, many=True)
        serializer.is_valid(raise_exception=True)
        key: Any = request.auth
        with transaction.atomic():
            told = [store(key.project_id, item) for item in serializer.validated_data]
        return Response({"accepted": told.count("created"), "results": told})


def store(project_id: int, item: dict[str, Any]) -> str:
    """Save one event, redacted, unless it is known."""
    safe: Any = redact_json({name: value for name, value in item.items() if name != "occurred_at"})
    text = json.dumps(safe, sort_keys=True) + item["occurred_at"].isoformat()
    content_hash = sha256(text.encode()).digest()
    now = timezone.now()
    identity, is_new = EventIdentity.objects.get_or_create(
        project_id=project_id,
        event_id=item["event_id"],
        defaults={
            "occurred_at": item["occurred_at"],
            "content_hash": content_hash,
            "received_at": now,
        },
    )
    if not is_new:
        same = bytes(identity.content_hash) == content_hash
        return "duplicate" if same else "conflict"
    _, node, kind = item["name"].split(".")
    key = {
        "project_id": project_id,
        "event_id": item["event_id"],
        "occurred_at": item["occurred_at"],
    }
    columns = {
        name: safe[name]
        for name in safe
        if name not in {"event_id", "name", "validation_errors", "raw_output_preview"}
    }
    Event.objects.create(**key, **columns, node=node, kind=kind, received_at=now)
    if kind != "succeeded":
        EventPayload.objects.create(
            **key,
            raw_output_preview=safe.get("raw_output_preview"),
            validation_errors=safe.get("validation_errors", []),
            repairs=[],
            coerced=[],
            attributes={},
            redacted_kinds=[],
        )
    return "created"
