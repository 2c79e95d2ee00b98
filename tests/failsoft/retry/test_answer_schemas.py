"""The schemas a provider enforces: whatever fits the narrow one is valid."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from failsoft.retry.answer_schemas import answer_schema, arguments_schema, narrow_schema
from failsoft.retry.answers import PlannerSchema, Understood, interpret
from failsoft.retry.prompts import ToolOffer

LIST = {"type": "array"}
ARGUMENTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "kind": {"enum": ["a", "b"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "values": {"type": "object"},
        "items": LIST,
        "anything": {},
        "optional": {"type": "string"},
    },
    "required": ["name", "kind", "count", "values", "items", "anything"],
}
TOOLS = (ToolOffer("echo", parameters={"properties": {}}), ToolOffer("rich", "", ARGUMENTS))


def make_step(number: int) -> dict[str, object]:
    """The step that the schema asks for at this place."""
    earlier = [f"step_{number - 1}"] if number > 1 else []
    call = {"name": "echo", "args": {"text": "hi"}}
    return {"step_id": f"step_{number}", "dependencies": earlier, "tool": call}


def test_a_plan_that_fits_is_valid() -> None:
    plan = {"steps": [make_step(number) for number in (1, 2, 3)]}

    jsonschema_rs.validate(narrow_schema(PlannerSchema.PLAN, TOOLS), plan)

    assert isinstance(interpret(json.dumps(plan), "stop", PlannerSchema.PLAN), Understood)


@pytest.mark.parametrize(
    "change",
    [
        {"step_id": "step_9"},
        {"dependencies": ["step_2"]},
        {"dependencies": ["step_1", "step_1"]},
        {"tool": {"name": "ecko", "args": {"text": "hi"}}},
        {"tool": "echo"},
    ],
)
def test_a_plan_that_could_be_wrong_does_not_fit(change: dict[str, object]) -> None:
    plan = {"steps": [make_step(1), make_step(2) | change, make_step(3)]}

    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(narrow_schema(PlannerSchema.PLAN, TOOLS), plan)


@pytest.mark.parametrize(
    "proposal",
    [
        {"kind": "call_tool", "tool": "echo", "args": {"text": "hi"}},
        {"kind": "ask_user", "question": "Which city?", "need": "input"},
        {"kind": "finish", "answer": "done"},
    ],
)
def test_a_proposal_that_fits_is_valid(proposal: dict[str, object]) -> None:
    jsonschema_rs.validate(narrow_schema(PlannerSchema.NEXT_STEP, TOOLS), proposal)

    assert isinstance(interpret(json.dumps(proposal), "stop", PlannerSchema.NEXT_STEP), Understood)


def test_arguments_are_of_one_plain_type_each() -> None:
    schema = arguments_schema(TOOLS[1])

    assert list(schema["properties"]) == ARGUMENTS["required"]
    assert schema["properties"]["kind"] == {"enum": ["a", "b"]}
    assert schema["properties"]["count"] == {"type": "integer", "minimum": 1, "maximum": 9}
    assert schema["properties"]["anything"]["type"] == "string"


def test_no_schema_says_items_false() -> None:
    assert '"items": false' not in json.dumps(narrow_schema(PlannerSchema.PLAN, TOOLS))


def test_nested_arguments_keep_their_types_and_limits() -> None:
    address = {
        "type": "object",
        "properties": {"street": {"type": "string", "minLength": 3}, "floor": {"type": "integer"}},
        "required": ["street"],
    }
    parameters = {
        "$defs": {"Address": address},
        "properties": {
            "to": {"$ref": "#/$defs/Address"},
            "weights": {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}},
            "fee": {"anyOf": [{"type": "integer", "exclusiveMaximum": 9}, {"type": "null"}]},
            "codes": {"type": "object", "additionalProperties": {"type": "integer"}},
            "unit": {"const": "kg"},
        },
        "required": ["to", "weights", "fee", "codes", "unit"],
    }

    schema = arguments_schema(ToolOffer("ship", "", parameters))

    good = {"to": {"street": "Elm"}, "weights": [1], "fee": 8, "codes": {"text": 1}, "unit": "kg"}
    jsonschema_rs.validate(schema, good)
    jsonschema_rs.validate(parameters, good)
    for name, bad in {
        "to": {},
        "weights": [0],
        "fee": 9,
        "codes": {"text": "a"},
        "unit": 1,
    }.items():
        assert not jsonschema_rs.is_valid(schema, good | {name: bad}), name


def test_a_schema_that_refers_to_itself_ends() -> None:
    tree = {
        "type": "object",
        "properties": {"left": {"$ref": "#/$defs/Tree"}},
        "required": ["left"],
    }
    parameters = {"$defs": {"Tree": tree}, "properties": {"root": {"$ref": "#/$defs/Tree"}},
                  "required": ["root"]}  # fmt: skip

    assert "$ref" not in json.dumps(arguments_schema(ToolOffer("grow", "", parameters)))


def test_an_argument_that_may_be_null_has_its_other_type() -> None:
    nothing = {"type": "null"}
    parameters = {
        "properties": {
            "count": {"type": ["null", "integer"]},
            "size": {"anyOf": [nothing, {"type": "number"}]},
            "any": True,
        },
        "required": ["count", "size", "any"],
    }

    schema = arguments_schema(ToolOffer("order", "", parameters))

    kinds = {name: form["type"] for name, form in schema["properties"].items()}
    assert kinds == {"count": "integer", "size": "number", "any": "string"}


@pytest.mark.parametrize(
    ("limits", "good"),
    [
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"exclusiveMinimum": 0, "maximum": 1}, 0.3),
        ({"minimum": 0.5, "exclusiveMaximum": 1}, 0.6),
        ({"minimum": 5, "exclusiveMinimum": 1, "maximum": 7, "exclusiveMaximum": 9}, 6),
    ],
)
def test_a_narrow_range_of_numbers_keeps_some(limits: dict[str, float], good: float) -> None:
    share = {"type": "number", **limits}
    parameters = {"properties": {"share": share}, "required": ["share"]}

    schema = arguments_schema(ToolOffer("take", "", parameters))

    jsonschema_rs.validate(schema, {"share": good})
    bounds = schema["properties"]["share"]
    assert all(jsonschema_rs.is_valid(share, bounds[name]) for name in ("minimum", "maximum"))


SHARED = {
    "type": "object",
    "$defs": {"place": {"type": "object", "properties": {"to": {"$ref": "#/$defs/place"}}}},
    "definitions": {"~/": {"type": "integer"}},
    "properties": {
        "at": {"$ref": "#/$defs/place", "description": "where"},
        "back": {"$ref": "#/properties/at"},
        "count": {"$ref": "#/definitions/~0~1"},
        "far": {"$ref": "https://elsewhere.example/schema"},
    },
}
ALL_TOOLS = (*TOOLS, ToolOffer("go", "", SHARED))


def parts_of(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema."""
    if isinstance(schema, dict):
        yield schema
        schema = list(schema.values())
    for part in schema if isinstance(schema, list) else ():
        yield from parts_of(part)


@pytest.mark.parametrize("tools", [TOOLS[:1], ALL_TOOLS], ids=["one tool", "several"])
@pytest.mark.parametrize("kind", PlannerSchema)
def test_a_schema_has_the_form_that_openai_and_anthropic_accept(
    kind: PlannerSchema, tools: tuple[ToolOffer, ...]
) -> None:
    schema = answer_schema(kind, tools)

    assert schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf", "$ref"} & schema.keys()
    # One list is the tool's own.
    lists = [part for part in parts_of(schema) if part.get("type") == "array"]
    assert all("items" in part for part in lists if part != LIST)
    assert '"$ref"' not in json.dumps(schema)
    assert '"$defs"' not in json.dumps(schema)
    assert '"definitions"' not in json.dumps(schema)
    jsonschema_rs.validator_for(schema)


@pytest.mark.parametrize(
    "plan",
    [
        [make_step(1)],
        [make_step(number) for number in range(1, 8)],
        [{**make_step(1), "tool": {"name": "go", "args": {"at": {"to": {"to": {}}}}}}],
    ],
    ids=["one step", "seven steps", "optional arguments"],
)
def test_a_plan_may_have_as_many_steps_and_arguments_as_it_needs(
    plan: list[dict[str, object]],
) -> None:
    jsonschema_rs.validate(answer_schema(PlannerSchema.PLAN, ALL_TOOLS), {"steps": plan})


@pytest.mark.parametrize(
    "proposal",
    [
        {"kind": "call_tool", "tool": "rich", "args": {"count": 1, "optional": "x"}},
        {"kind": "ask_user", "question": "Which city?" * 20, "need": "input"},
        {"kind": "finish", "answer": "done"},
    ],
)
def test_every_next_step_fits_the_schema_of_one_object(proposal: dict[str, object]) -> None:
    tools = (TOOLS[0], ToolOffer("rich", "", {**ARGUMENTS, "required": ["count"]}))

    jsonschema_rs.validate(answer_schema(PlannerSchema.NEXT_STEP, tools), proposal)


def test_references_of_a_tool_are_resolved_wherever_they_lead() -> None:
    schema = answer_schema(PlannerSchema.ACTIONS, ALL_TOOLS[-1:])

    arguments = schema["properties"]["tool_calls"]["items"]["properties"]["arguments"]
    assert arguments["properties"]["at"]["description"] == "where"
    assert arguments["properties"]["back"]["properties"]["to"]["type"] == "object"
    assert arguments["properties"]["count"] == {"type": "integer"}
    assert arguments["properties"]["far"] == {}


def test_an_argument_may_be_named_like_a_keyword() -> None:
    names = {"$ref": {"type": "string"}, "definitions": {"type": "integer"}}
    tool = ToolOffer("odd", "", {"type": "object", "properties": names, "required": [*names]})

    schema = answer_schema(PlannerSchema.ACTIONS, [tool])

    arguments = schema["properties"]["tool_calls"]["items"]["properties"]["arguments"]
    assert arguments["properties"] == names


def test_a_schema_of_references_to_itself_stays_small() -> None:
    bomb = {"type": "object", "properties": {f"p{n}": {"$ref": "#"} for n in range(100)}}

    schema = answer_schema(PlannerSchema.PLAN, [ToolOffer("bomb", "", bomb)])

    assert len(json.dumps(schema)) < 100_000


def test_without_tools_a_next_step_calls_none() -> None:
    schema = answer_schema(PlannerSchema.NEXT_STEP, ())

    assert schema["properties"]["kind"]["enum"] == ["ask_user", "finish"]
    assert "args" not in schema["properties"]
