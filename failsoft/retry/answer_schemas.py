"""JSON Schemas of answers for providers that enforce them: one for all, and a narrow one.

The first leaves steps and arguments as they are meant, in what OpenAI and Anthropic accept, too:
the root is one object, every array has `items`, and references are resolved.

The narrow one is for small models behind a grammar. A plan has one `prefixItems` entry per step,
with a constant id, dependencies on earlier ids only, and registered tools only: a model cannot
violate what the grammar enforces.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from failsoft.json_values import pointer_parts
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.prompts import ToolOffer
from failsoft.retry.proposals import Need

STEPS = 3
MAX_TEXT = 80
# Calls of an answer, and entries of a call, that a grammar allows.
CALLS = 2
# Levels of objects and arrays inside an argument.
MAX_NESTED = 4
MOST_OBJECTS = 2_000
SHARED = frozenset({"$schema", "$defs", "definitions"})
TEXT = {"type": "string"}
SHORT_ID = {"type": "string", "minLength": 4, "maxLength": 8}

JsonSchema = dict[str, Any]


def answer_schema(schema: PlannerSchema, tools: Sequence[ToolOffer]) -> JsonSchema:
    """Return the schema of an answer that may use these tools, as every provider accepts it."""
    match schema:
        case PlannerSchema.ACTIONS:
            return closed_object({"tool_calls": _list_of(_any_call(tools, "arguments"))})
        case PlannerSchema.PLAN:
            names = {"type": "array", "items": TEXT}
            tool = _any_call(tools, "args")
            step = closed_object({"step_id": TEXT, "dependencies": names, "tool": tool})
            return closed_object({"steps": _list_of(step)})
        case PlannerSchema.NEXT_STEP:
            forms = [_arguments(tool) for tool in tools]
            kinds = {
                "call_tool": {"tool": _one_of([tool.name for tool in tools]), "args": _any(forms)},
                "ask_user": {"question": TEXT, "need": _one_of(list(Need))},
                "finish": {"answer": TEXT},
            }
            if not tools:
                del kinds["call_tool"]
            fields = {name: form for kind in kinds.values() for name, form in kind.items()}
            whole = closed_object({"kind": _one_of(list(kinds)), **fields})
            return {**whole, "required": ["kind"]}


def _any_call(tools: Sequence[ToolOffer], arguments: str) -> JsonSchema:
    calls = [{"name": _one_of([tool.name]), arguments: _arguments(tool)} for tool in tools]
    return _any([closed_object(call) for call in calls])


def _arguments(tool: ToolOffer) -> JsonSchema:
    own = {key: part for key, part in tool.parameters.items() if key not in SHARED}
    return {"type": "object", **_resolved(own, tool.parameters, iter(range(MOST_OBJECTS)), 0)}


def _resolved(part: Any, root: JsonSchema, room: Iterator[int], depth: int) -> Any:  # noqa: ANN401 - JSON
    """Return a schema without references, which would be looked for in the root of another.

    Where they lead too deep, or there is no room for more objects, anything is accepted.
    """
    if isinstance(part, list):
        return [_resolved(item, root, room, depth) for item in part]
    if not isinstance(part, dict):
        return part
    if depth > MAX_NESTED or next(room, None) is None:
        return {}
    # An argument may have this name, too.
    if isinstance(reference := part.get("$ref"), str):
        beside = {key: value for key, value in part.items() if key != "$ref"}
        return _resolved({**_meant(reference, root), **beside}, root, room, depth + 1)
    return {key: _resolved(value, root, room, depth) for key, value in part.items()}


def _meant(reference: str, root: JsonSchema) -> JsonSchema:
    """Return what a reference leads to, within its own schema; anything if it leads elsewhere."""
    meant: Any = root
    for name in pointer_parts(reference.removeprefix("#")):
        meant = meant.get(name) if isinstance(meant, dict) else None
    return meant if isinstance(meant, dict) else {}


def _list_of(items: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": items, "minItems": 1}


def _any(forms: Sequence[JsonSchema]) -> JsonSchema:
    return {"anyOf": list(forms)} if len(forms) > 1 else next(iter(forms), {})


def _one_of(values: Sequence[str]) -> JsonSchema:
    return {"type": "string", "enum": list(values)}


def narrow_schema(schema: PlannerSchema, tools: Sequence[ToolOffer]) -> JsonSchema:
    """Return a schema of an answer that even a small model fits with a short text."""
    if schema is PlannerSchema.ACTIONS:
        # A list of calls, for models without native tool calls.
        calls = [
            closed_object({"name": {"const": tool.name}, "arguments": _narrowed(tool.parameters)})
            for tool in tools
        ]
        call_list = {"type": "array", "items": {"anyOf": calls}}
        return closed_object({"tool_calls": {**call_list, "minItems": 1, "maxItems": CALLS}})
    return plan_schema(tools) if schema is PlannerSchema.PLAN else proposal_schema(tools)


def plan_schema(tools: Sequence[ToolOffer]) -> JsonSchema:
    """Return the schema of a plan of exactly STEPS steps, valid by construction."""
    return closed_object(
        {
            "steps": {
                "type": "array",
                "prefixItems": [_step(number, tools) for number in range(1, STEPS + 1)],
                "minItems": STEPS,
                "maxItems": STEPS,
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
        {"kind": {"const": "ask_user"}, "question": _text(), "need": {"enum": list(Need)}}
    )
    finish = closed_object({"kind": {"const": "finish"}, "answer": _text()})
    return {"anyOf": [*calls, ask, finish]}


def arguments_schema(tool: ToolOffer) -> JsonSchema:
    """Return the schema of the required arguments, each of one plain form for any grammar."""
    if tool.properties:
        return _plain_object(tool.parameters, tool.parameters, 0)
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


def _plain(form: JsonSchema | bool, root: JsonSchema, depth: int) -> JsonSchema:
    """Return a schema that accepts less: one form of each value, with what it requires."""
    if depth > MAX_NESTED or isinstance(form, bool):
        return _text()
    reference = form.get("$ref")
    schema = _meant(reference, root) if isinstance(reference, str) else form
    kinds = schema.get("type")
    if isinstance(kinds, list):
        schema = {**schema, "type": next((kind for kind in kinds if kind != "null"), "null")}
    forms = schema.get("anyOf") or schema.get("oneOf")
    if forms:
        forms = [one for one in forms if one != {"type": "null"}] or forms
        return _plain(forms[0], root, depth + 1)
    for key in ("enum", "const"):
        if key in schema:
            return {key: schema[key]}
    match schema.get("type"):
        case "object":
            return _plain_object(schema, root, depth)
        case "array":
            items = schema.get("items")
            item = _plain(items, root, depth + 1) if isinstance(items, dict) else _text(40)
            count = max(1, schema.get("minItems", 1))
            return {"type": "array", "items": item, "minItems": count, "maxItems": max(2, count)}
        case "integer" | "number" | "boolean" as kind:
            return {"type": kind, **_bounds(schema, is_whole=kind == "integer")}
    longest, shortest = schema.get("maxLength", MAX_TEXT), schema.get("minLength", 1)
    return _text(max(shortest, min(longest, MAX_TEXT)), max(1, shortest))


def _plain_object(schema: JsonSchema, root: JsonSchema, depth: int) -> JsonSchema:
    properties = schema.get("properties", {})
    named = {
        name: _plain(properties.get(name, {}), root, depth + 1)
        for name in schema.get("required", ())
    }
    if named or properties:
        return closed_object(named)
    others = schema.get("additionalProperties")
    value = _plain(others, root, depth + 1) if isinstance(others, dict) else _text()
    return closed_object({"text": value})


def _bounds(schema: JsonSchema, *, is_whole: bool) -> JsonSchema:
    """Return the limits of a number, which are all inclusive: not every grammar has others."""
    bounds: JsonSchema = {key: schema[key] for key in ("minimum", "maximum") if key in schema}
    low = max(schema.get(key, -math.inf) for key in ("minimum", "exclusiveMinimum"))
    high = min(schema.get(key, math.inf) for key in ("maximum", "exclusiveMaximum"))
    step = 1 if is_whole else min(1, (high - low) / 4)
    if schema.get("exclusiveMinimum") == low:
        bounds["minimum"] = (math.floor(low) if is_whole else low) + step
    if schema.get("exclusiveMaximum") == high:
        bounds["maximum"] = (math.ceil(high) if is_whole else high) - step
    return bounds


def _text(longest: int = MAX_TEXT, shortest: int = 1) -> JsonSchema:
    return {"type": "string", "minLength": shortest, "maxLength": longest}


def closed_object(properties: JsonSchema) -> JsonSchema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
