"""Resources of the HTTP API: a pydantic model defines fields, bounds, OpenAPI and output.

And what the generator of the OpenAPI document cannot derive, with the examples in it.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from drf_spectacular.drainage import set_override
from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from diagnostics.store.windows import TimeMark
from failsoft.events import ParseErrorType, UncheckedReason

Json = dict[str, Any]
COMPONENT = "#/components/schemas/{model}"
SUFFIX = "Resource"
EMPTY: tuple[object, ...] = (None, "", (), [])
_component: Any = ResolvedComponent  # its constructor has no types


class Resource(BaseModel):
    """A body or response of the API; responses are read from attributes or a mapping."""

    model_config = ConfigDict(from_attributes=True, frozen=True)

    @classmethod
    def dump(cls, row: object) -> Json:
        return cls.model_validate(row).model_dump(by_alias=True)


ItemT = TypeVar("ItemT", bound=BaseModel)


class Listed(Resource, Generic[ItemT]):
    """All items of a kind."""

    items: list[ItemT]

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """Return the name of the component: what is listed, then how."""
        item: str = params[0].__name__
        return item.removesuffix(SUFFIX) + cls.__name__


class Paged(Listed[ItemT], Generic[ItemT]):
    """A page of a list; `next` is the cursor of the next page."""

    next: str | None


class CoversResource(Resource):
    """The counted part of the requested range: since <= t < until."""

    since: datetime
    until: datetime


class Counted(Paged[ItemT], Generic[ItemT]):
    """A page of a list of counts, and the counted times."""

    covers: CoversResource


def describe_covers(since: datetime, until: datetime) -> Json:
    return CoversResource(since=since, until=until).model_dump()


def describe_model(model: type[BaseModel], *, is_partial: bool = False) -> Json:
    """Return the schema of a body with references inlined; a partial one has no required fields."""
    schema = _schema_of(model, "validation")
    if is_partial:
        schema.pop("required", None)
    inlined: Json = _inline_references(schema, schema.pop("$defs", {}))
    return inlined


class ModelSchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call] # its metaclass
    """Describes pydantic models; optional fields of a body may be omitted."""

    target_class = "pydantic.BaseModel"
    match_subclasses = True
    # Before the library's extension, which describes bodies like responses.
    priority = 1

    def get_name(self, auto_schema: AutoSchema, direction: str) -> str:
        # The same model occurs as a class and, inside others, by its name.
        set_override(self.target, "suppress_collision_warning", True)
        name: str = self.target.__name__
        return name.removesuffix(SUFFIX)

    def map_serializer(self, auto_schema: AutoSchema, direction: str) -> Json:
        """Return the schema; models inside become components of their own."""
        mode: JsonSchemaMode = "validation" if direction == "request" else "serialization"
        described = _schema_of(self.target, mode)
        # The generator names enums itself, and keeps apart two classes with the same name.
        enums = {name: part for name, part in described.get("$defs", {}).items() if "enum" in part}
        schema: Json = _inline_references(described, enums)
        for name, part in schema.pop("$defs", {}).items():
            if name not in enums:
                component = _component(name, ResolvedComponent.SCHEMA, part, name)
                auto_schema.registry.register_on_missing(component)
        return schema


class _ComponentNames(GenerateJsonSchema):
    """Names the models inside a model as `get_name` does."""

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(name).removesuffix(SUFFIX)

    def default_schema(self, schema: Any) -> Json:  # noqa: ANN401 - pydantic's own
        # Responses omit unknown fields. In a body an empty default adds nothing, and generated
        # types require every field with a default.
        if self.mode == "serialization" or schema.get("default") in EMPTY:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def float_schema(self, schema: Any) -> Json:  # noqa: ANN401 - pydantic's own
        # OpenAPI's format of a float.
        number_format = {"format": "double"} if self.mode == "serialization" else {}
        return {**super().float_schema(schema), **number_format}


def _schema_of(model: type[BaseModel], mode: JsonSchemaMode) -> Json:
    return model.model_json_schema(
        ref_template=COMPONENT, mode=mode, schema_generator=_ComponentNames
    )


def _inline_references(part: Any, definitions: Json) -> Any:  # noqa: ANN401 - JSON
    if isinstance(part, list):
        return [_inline_references(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    name = str(part.get("$ref", "")).rpartition("/")[2]
    if name in definitions:
        beside = {key: item for key, item in part.items() if key != "$ref"}
        return _inline_references({**definitions[name], **beside}, definitions)
    return {key: _inline_references(item, definitions) for key, item in part.items()}


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
