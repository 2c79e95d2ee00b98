"""What the OpenAPI document cannot find out by itself."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from pydantic import BaseModel

from diagnostics.serializers import ProblemSerializer

REFUSALS = dict.fromkeys((400, 401, 403, 413, 415, 422, 429, 503), ProblemSerializer)
"""What any endpoint that takes a body may answer."""
EXPORTS: dict[Any, Any] = {
    (200, "text/csv"): {"type": "string"},
    (200, "application/x-ndjson"): {"type": "string"},
    **dict.fromkeys((400, 401, 403, 406, 503), ProblemSerializer),
}
"""What any list may answer beside a page."""
DEFINITIONS = "$defs"
REFERENCE = f"#/{DEFINITIONS}/"


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # its metaclass
    """Describes the API key as a bearer token."""

    target_class = "diagnostics.access.authentication.ApiKeyAuthentication"
    name = "ApiKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """Give the security scheme."""
        form = "fs_<id>_<secret>"
        return {"type": "http", "scheme": "bearer", "bearerFormat": form}


def describe_model(model: type[BaseModel]) -> dict[str, Any]:
    """Give the JSON Schema of a model in one piece, without references."""
    schema = model.model_json_schema()
    definitions = schema.pop(DEFINITIONS, {})
    whole: dict[str, Any] = _in_one_piece(schema, definitions)
    return whole


def _in_one_piece(part: Any, definitions: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(part, list):
        return [_in_one_piece(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    name = str(part.get("$ref", "")).removeprefix(REFERENCE)
    if name in definitions:
        return _in_one_piece(definitions[name], definitions)
    return {key: _in_one_piece(item, definitions) for key, item in part.items()}
