"""What the generator of the OpenAPI document cannot derive, and the examples in it."""

import json
from pathlib import Path
from typing import Any, Literal

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from pydantic import Field

from diagnostics.rest.resources import Json, Resource
from diagnostics.store.windows import TimeMark
from failsoft.events import ParseErrorType, UncheckedReason


class Fault(Resource):
    """One reason why an item was refused."""

    path: str = Field(description="JSON pointer into the item")
    code: str
    message: str


class ItemResultResource(Resource):
    """The result of one item of a batch."""

    index: int = Field(ge=0)
    event_id: str | None
    status: Literal["created", "duplicate", "conflict", "invalid"]
    errors: list[Fault] = []
    name: str | None = Field(default=None, description="of the event that an answer became")
    parse_error_type: ParseErrorType | None = Field(default=None, description="of an answer")
    unchecked: UncheckedReason | None = Field(
        default=None, description="why nothing checked an answer"
    )
    time_mark: TimeMark | None = Field(
        default=None, description="of a new item that is ahead of the clock, or too late for alerts"
    )


class BatchResultResource(Resource):
    """The result of a batch; `results` lists the items that were not created."""

    accepted: int
    duplicates: int
    rejected: int
    preview_share: float = Field(
        description="of previews that are kept now; under 1 above the spike bound"
    )
    results: list[ItemResultResource]
    warnings: list[Fault] = Field(
        default=[], description="unknown fields, taken as attributes, and unchecked answers"
    )


class ProblemResource(Resource):
    """A refusal of the whole request."""

    detail: str
    code: str = ""
    line: int = Field(default=1, description="1-based, of a body that is not JSON")
    column: int = 1
    errors: list[Fault] = []


ROW_PROBLEMS = dict.fromkeys((401, 403, 404), ProblemResource)
"""The refusals of a key or an unknown row."""
BODY_PROBLEMS = dict.fromkeys((400, 401, 403, 413, 415), ProblemResource)
"""The refusals of a key or a body before its content is checked."""
REFUSALS = dict.fromkeys((400, 401, 403, 413, 415, 422, 429, 503), ProblemResource)
"""The error responses of any endpoint with a body."""
EXPORTS: dict[Any, Any] = {
    (200, "text/csv"): {"type": "string"},
    (200, "application/x-ndjson"): {"type": "string"},
    **dict.fromkeys((400, 401, 403, 406, 503), ProblemResource),
}
"""The responses of any list besides a page."""


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # its metaclass
    target_class = "diagnostics.accounts.authentication.ApiKeyAuthentication"
    name = "ApiKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        form = "fs_<id>_<secret>"
        return {"type": "http", "scheme": "bearer", "bearerFormat": form}


ACTIONS = {"POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "destroy"}


class AddressSchema(AutoSchema):
    """Names operations by their address: `goals_list`, `goals_retrieve`, `goals_cancel`."""

    def get_operation_id(self) -> str:
        """Return the names in the address, and what is done unless the last one says it."""
        *above, last = self.path.removeprefix("/api/v1/").split("/")
        names = [name.replace("-", "_") for name in (*above, last) if "{" not in name]
        if "{" in last or "{" not in self.path:
            read = "retrieve" if "{" in last else "list"
            names.append(ACTIONS.get(self.method, read))
        return "_".join(names)


EXAMPLES: Json = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))


def add_examples(result: Json, **_: object) -> Json:
    """Return the document with the examples of its components, and of a body that has none."""
    for name, schema in result["components"]["schemas"].items():
        if name in EXAMPLES:
            schema["examples"] = [EXAMPLES[name]]
    for operation in (
        operation for path in result["paths"].values() for operation in path.values()
    ):
        if operation["operationId"] in EXAMPLES:
            body = operation["requestBody"]["content"]["application/json"]["schema"]
            body["examples"] = [EXAMPLES[operation["operationId"]]]
    return result
