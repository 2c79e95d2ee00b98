"""JSON Schemas of answers for providers that enforce them, narrow enough for small models.

A plan has one `prefixItems` entry per step, with a constant id, dependencies on earlier ids only,
and registered tools only: a model cannot violate what the grammar enforces.
"""

from collections.abc import Sequence
from typing import Any

from failsoft.retry.answers import PlannerSchema
from failsoft.retry.prompts import ToolOffer

STEPS = 3
MAX_TEXT = 80
# Calls of an answer, and entries of a call, that a grammar allows.
CALLS = 2
SHORT_ID = {"type": "string", "minLength": 4, "maxLength": 8}

JsonSchema = dict[str, Any]
_SIMPLE_TYPES = frozenset({"string", "integer", "number", "boolean"})


def answer_schema(schema: PlannerSchema, tools: Sequence[ToolOffer]) -> JsonSchema:
    """Return the schema of an answer that may use these tools."""
    if schema is PlannerSchema.ACTIONS:
        return calls_schema(tools)
    return plan_schema(tools) if schema is PlannerSchema.PLAN else proposal_schema(tools)


def plan_schema(tools: Sequence[ToolOffer], steps: int = STEPS) -> JsonSchema:
    """Return the schema of a plan of exactly `steps` steps, valid by construction."""
    return closed_object(
        {
            "steps": {
                "type": "array",
                "prefixItems": [_step(number, tools) for number in range(1, steps + 1)],
                "minItems": steps,
                "maxItems": steps,
            }
        }
    )


def proposal_schema(tools: Sequence[ToolOffer]) -> JsonSchema:
    """Return the schema of a next step: a tool call, a question, or the end."""
    calls = [
        closed_object(
            {
                "kind": {"const": "call_tool"},
                "tool": {"const": tool.name},
                "args": arguments_schema(tool),
            }
        )
        for tool in tools
    ]
    ask = closed_object(
        {
            "kind": {"const": "ask_user"},
            "question": _text(),
            "need": {"enum": ["input", "confirmation", "secret"]},
        }
    )
    finish = closed_object({"kind": {"const": "finish"}, "answer": _text()})
    return {"anyOf": [*calls, ask, finish]}


def calls_schema(tools: Sequence[ToolOffer]) -> JsonSchema:
    """Return the schema of a list of calls, for models without native tool calls."""
    calls = [
        closed_object({"name": {"const": tool.name}, "arguments": _narrowed(tool.parameters)})
        for tool in tools
    ]
    call_list = {"type": "array", "items": {"anyOf": calls}}
    return closed_object({"tool_calls": {**call_list, "minItems": 1, "maxItems": CALLS}})


def arguments_schema(tool: ToolOffer) -> JsonSchema:
    """Return the schema of the required arguments, each of one plain type for any grammar."""
    properties = {name: _plain(tool.properties.get(name, {})) for name in tool.required}
    if properties or tool.properties:
        return closed_object(properties)
    # A tool that accepts any arguments gets one text.
    return closed_object({"text": _text()})


def _step(number: int, tools: Sequence[ToolOffer]) -> JsonSchema:
    earlier = [f"step_{index}" for index in range(1, number)]
    dependencies: JsonSchema = {"type": "array", "maxItems": min(1, len(earlier))}
    if earlier:
        dependencies["items"] = {"enum": earlier}
    return closed_object(
        {
            "step_id": {"const": f"step_{number}"},
            "dependencies": dependencies,
            "tool": {
                "anyOf": [
                    closed_object({"name": {"const": tool.name}, "args": arguments_schema(tool)})
                    for tool in tools
                ]
            },
        }
    )


def _narrowed(schema: JsonSchema) -> JsonSchema:
    """Return the schema with bounded texts and lists, without optional free text."""
    if schema.get("type") == "array":
        items = _narrowed(schema["items"])
        return {"type": "array", "items": items, "minItems": 1, "maxItems": CALLS}
    if schema.get("type") == "object":
        required = schema.get("required", [])
        properties = {
            name: SHORT_ID if name == "id" else _narrowed(inner)
            for name, inner in schema.get("properties", {}).items()
            if name in required or not _is_free_text(inner)
        }
        return {**closed_object(properties), "required": required}
    if schema.get("type") == "string" and "enum" not in schema:
        return _text()
    return {key: value for key, value in schema.items() if key != "description"}


def _is_free_text(schema: JsonSchema) -> bool:
    is_text = schema.get("type") == "string" and "enum" not in schema
    return is_text and "description" not in schema


def _plain(schema: JsonSchema) -> JsonSchema:
    if "enum" in schema:
        return {"enum": schema["enum"]}
    kind = schema.get("type")
    if kind == "object":
        return closed_object({"text": _text()})
    if kind == "array":
        return {"type": "array", "items": _text(40), "minItems": 1, "maxItems": 2}
    if kind == "string" or kind not in _SIMPLE_TYPES:
        return _text()
    bounds = [(key, schema[key]) for key in ("minimum", "maximum") if key in schema]
    return {"type": kind, **dict(bounds)}


def _text(limit: int = MAX_TEXT) -> JsonSchema:
    return {"type": "string", "minLength": 1, "maxLength": limit}


def closed_object(properties: JsonSchema) -> JsonSchema:
    """Return the schema of an object with exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
