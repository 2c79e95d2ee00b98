"""Schemas that a span tells: those of its tools, and that of the answer it asked for."""

from collections.abc import Iterator, Mapping
from typing import Any

from diagnostics.ingest.otlp.attributes import Bag, decoded

SCHEMAS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema")
MAX_TOOLS = 200
STRUCTURED = ("gen_ai.request.structured_output_schema", "llm.request.structured_output_schema")
PARAMETERS = "model_request_parameters"
OUTPUT_MODES = frozenset({"tool", "native", "prompted"})


def tools_of(bag: Bag) -> dict[str, Any]:
    """Return the schemas of the tools a request offered, by the name of the tool."""
    found: dict[str, Any] = {}
    for tool in _definitions(bag):
        inner = tool.get("function")
        told = inner if isinstance(inner, Mapping) else tool
        name = told.get("name")
        schema = decoded(next((told[key] for key in SCHEMAS if key in told), None))
        if isinstance(name, str) and isinstance(schema, dict):
            found.setdefault(name, schema)
    return found


def answer_schema_of(bag: Bag) -> Any:  # noqa: ANN401 - any JSON
    """Return the schema a request asked its answer to have, None where it tells none."""
    output = _parameters(bag).get("output_object")
    if isinstance(output, Mapping):
        return output.get("json_schema")
    asked = response_format_of(bag)
    if isinstance(asked, Mapping) and isinstance(asked.get("json_schema"), Mapping):
        return asked["json_schema"].get("schema")
    return next((decoded(bag[key]) for key in STRUCTURED if key in bag), None)


def is_structured(bag: Bag) -> bool:
    """Whether a request leaves the model no other way than to answer with a value."""
    if _parameters(bag).get("output_mode") in OUTPUT_MODES:
        return True
    asked = response_format_of(bag)
    kind = asked.get("type") if isinstance(asked, Mapping) else None
    return kind in ("json_object", "json_schema") or any(key in bag for key in STRUCTURED)


def response_format_of(bag: Bag) -> Any:  # noqa: ANN401 - any JSON
    """Return what OpenInference tells of `response_format`."""
    invocation = decoded(bag.get("llm.invocation_parameters"))
    return invocation.get("response_format") if isinstance(invocation, dict) else None


def _parameters(bag: Bag) -> Mapping[str, Any]:
    """Return pydantic-ai's own account of a request."""
    told = decoded(bag.get(PARAMETERS))
    return told if isinstance(told, dict) else {}


def _definitions(bag: Bag) -> Iterator[Mapping[str, Any]]:
    lists = [decoded(bag.get("gen_ai.tool.definitions")), *_parameters_tools(bag)]
    for told in lists:
        yield from (tool for tool in told or () if isinstance(tool, Mapping))
    for index in range(MAX_TOOLS):
        tool = decoded(bag.get(f"llm.tools.{index}.tool.json_schema"))
        if not isinstance(tool, dict):
            break
        yield tool
    for prefix in ("llm.request.functions", "gen_ai.request.functions"):
        for index in range(MAX_TOOLS):
            name = bag.get(f"{prefix}.{index}.name")
            if name is None:
                break
            keys = ("parameters", "input_schema")
            schema = next((bag[k] for key in keys if (k := f"{prefix}.{index}.{key}") in bag), None)
            yield {"name": name, "parameters": schema}


def _parameters_tools(bag: Bag) -> list[Any]:
    told = _parameters(bag)
    return [told.get("output_tools"), told.get("function_tools")]
