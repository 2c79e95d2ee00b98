"""Schemas in a request: those of its tools, and that of the expected answer."""

from collections.abc import Iterator, Mapping
from typing import Any

from diagnostics.ingest.otlp.attributes import AttributeMap, decoded

SCHEMAS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema")
# Of OpenAI, Google and Bedrock.
WRAPPERS = ("function", "functionDeclarations", "function_declarations", "toolSpec")
MAX_TOOLS = 200
STRUCTURED = (
    "gen_ai.request.structured_output_schema",
    "llm.request.structured_output_schema",
    "ai.schema",
)
PARAMETERS = "model_request_parameters"
TOOL_KEYS = (
    "gen_ai.tool.definitions",
    PARAMETERS,
    "llm.tools.0.tool.json_schema",
    "llm.request.functions.0.name",
    "gen_ai.request.functions.0.name",
)
OUTPUT_MODES = ("tool", "native", "prompted")
# What providers wrap around the schema of an answer, and the types of these wrappers.
FORMATS = ("json_schema", "format", "schema")
FORMAT_TYPES = ("json_schema", "json_object", "text")


def tools_of(attributes: AttributeMap) -> dict[str | None, Any]:
    """Return the tools that a request offered, by name, each with its schema or None.

    The key None stands for tools whose names are not told.
    """
    schemas: dict[str | None, Any] = {}
    for definition in _definitions(attributes):
        name = definition.get("name")
        schema = decoded(next((definition[key] for key in SCHEMAS if key in definition), None))
        if isinstance(schema, dict) and isinstance(schema.get("json"), dict):
            schema = schema["json"]
        schemas.setdefault(
            name if isinstance(name, str) else None, schema if isinstance(schema, dict) else None
        )
    return schemas


def offers_tools(attributes: AttributeMap) -> bool:
    """Whether a request seems to offer tools, without reading them."""
    return any(key in attributes for key in TOOL_KEYS)


def answer_schema_of(attributes: AttributeMap) -> Any:  # noqa: ANN401 - any JSON
    """Return the schema that a request demands of its answer; None without one."""
    stated = next((decoded(attributes[key]) for key in STRUCTURED if key in attributes), None)
    formats = _parameters(attributes).get("output_object"), response_format_of(attributes), stated
    return _unwrapped(next((item for item in formats if isinstance(item, Mapping)), None))


def is_structured(attributes: AttributeMap) -> bool:
    """Whether a request forces the model to answer with a JSON value."""
    if _parameters(attributes).get("output_mode") in OUTPUT_MODES:
        return True
    response_format = response_format_of(attributes)
    kind = response_format.get("type") if isinstance(response_format, Mapping) else None
    return kind in ("json_object", "json_schema") or any(key in attributes for key in STRUCTURED)


def response_format_of(attributes: AttributeMap) -> Any:  # noqa: ANN401 - any JSON
    """Return OpenInference's `response_format`."""
    invocation = decoded(attributes.get("llm.invocation_parameters"))
    return invocation.get("response_format") if isinstance(invocation, dict) else None


def _unwrapped(schema: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return the schema in a response format, however its provider wraps it."""
    while isinstance(schema, Mapping):
        inner = next((schema[key] for key in FORMATS if isinstance(schema.get(key), Mapping)), None)
        if inner is None:
            return None if schema.get("type") in FORMAT_TYPES else schema
        schema = inner
    return None


def _parameters(attributes: AttributeMap) -> Mapping[str, Any]:
    """Return pydantic-ai's own description of a request."""
    parameters = decoded(attributes.get(PARAMETERS))
    return parameters if isinstance(parameters, dict) else {}


def _definitions(attributes: AttributeMap) -> Iterator[Mapping[str, Any]]:
    """Yield the definitions of tools, without what providers wrap around them."""
    for tool in _listed_tools(attributes):
        inner = next((tool[key] for key in WRAPPERS if key in tool), tool)
        for definition in inner if isinstance(inner, list) else [inner]:
            yield definition if isinstance(definition, Mapping) else {}


def _listed_tools(attributes: AttributeMap) -> Iterator[Mapping[str, Any]]:
    parameters = _parameters(attributes)
    listed = decoded(attributes.get("gen_ai.tool.definitions"))
    for definitions in (listed, parameters.get("output_tools"), parameters.get("function_tools")):
        if isinstance(definitions, list):
            yield from (tool for tool in definitions if isinstance(tool, Mapping))
    for index in range(MAX_TOOLS):
        tool = decoded(attributes.get(f"llm.tools.{index}.tool.json_schema"))
        if not isinstance(tool, dict):
            break
        yield tool
    for prefix in ("llm.request.functions", "gen_ai.request.functions"):
        for index in range(MAX_TOOLS):
            name = attributes.get(f"{prefix}.{index}.name")
            if name is None:
                break
            keys = (f"{prefix}.{index}.{key}" for key in ("parameters", "input_schema"))
            schema = next((attributes[key] for key in keys if key in attributes), None)
            yield {"name": name, "parameters": schema}
