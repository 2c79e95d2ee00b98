"""Resources of the HTTP API: a pydantic model defines fields, bounds, OpenAPI and output."""

from datetime import datetime
from typing import Any, Generic, TypeVar

from drf_spectacular.drainage import set_override
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

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
