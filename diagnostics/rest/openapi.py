"""What the OpenAPI document cannot find out by itself."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers

Texts = serializers.CharField
Numbers = serializers.IntegerField
Shares = serializers.FloatField


class FaultSerializer(serializers.Serializer[Any]):
    """One reason why an item was refused."""

    path = Texts(help_text="JSON pointer into the item")
    code = Texts()
    message = Texts()


class ItemResultSerializer(serializers.Serializer[Any]):
    """What became of one item of a batch."""

    index = Numbers(min_value=0)
    event_id = Texts(allow_null=True)
    status = serializers.ChoiceField(["created", "duplicate", "conflict", "invalid"])
    errors = FaultSerializer(many=True, required=False)  # type: ignore[assignment] # the wire calls it so


class BatchResultSerializer(serializers.Serializer[Any]):
    """What became of a batch; `results` lists what was not created."""

    accepted = Numbers()
    duplicates = Numbers()
    rejected = Numbers()
    preview_share = Shares(help_text="of previews that are kept now; under 1 above the spike bound")
    results = ItemResultSerializer(many=True)


class ProblemSerializer(serializers.Serializer[Any]):
    """A refusal of the whole request."""

    detail = Texts()
    code = Texts(required=False)
    line = Numbers(required=False, help_text="1-based, of a body that is not JSON")
    column = Numbers(required=False)
    errors = FaultSerializer(many=True, required=False)  # type: ignore[assignment] # the wire calls it so


ROW_PROBLEMS = dict.fromkeys((401, 403, 404), ProblemSerializer)
"""What a key or an unknown row may be refused for."""
BODY_PROBLEMS = dict.fromkeys((400, 401, 403, 413, 415), ProblemSerializer)
"""What a key or a body may be refused for before its content is judged."""
REFUSALS = dict.fromkeys((400, 401, 403, 413, 415, 422, 429, 503), ProblemSerializer)
"""What any endpoint that takes a body may answer."""
EXPORTS: dict[Any, Any] = {
    (200, "text/csv"): {"type": "string"},
    (200, "application/x-ndjson"): {"type": "string"},
    **dict.fromkeys((400, 401, 403, 406, 503), ProblemSerializer),
}
"""What any list may answer beside a page."""


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # its metaclass
    """Describes the API key as a bearer token."""

    target_class = "diagnostics.accounts.authentication.ApiKeyAuthentication"
    name = "ApiKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """Return the security scheme."""
        form = "fs_<id>_<secret>"
        return {"type": "http", "scheme": "bearer", "bearerFormat": form}
