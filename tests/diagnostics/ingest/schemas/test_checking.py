"""The checker agrees with an independent validator, and its work is bounded."""

from contextlib import suppress
from time import thread_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from diagnostics.ingest.schemas import OverBudgetError, SchemaFaultError, check, judge, read_schema
from tests.diagnostics.ingest.schemas.bombs import Bomb, all_bombs

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, 1.0, 1.5, -2.5]),
    st.sampled_from(["", "a", "ab", "b1", "é"]),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=12,
)
small = st.integers(0, 3)
names = st.lists(st.sampled_from("abc"), max_size=2, unique=True)
types = st.sampled_from(["string", "number", "integer", "boolean", "array", "object", "null"])


def _keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    some = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
            "enum": st.lists(values, min_size=1, max_size=3),
            "const": values,
            "minimum": st.integers(-2, 2),
            "exclusiveMaximum": st.integers(-2, 2),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "minLength": small,
            "maxLength": small,
            "pattern": st.sampled_from(["^a", "b", "[0-9]$"]),
            "minItems": small,
            "maxItems": small,
            "uniqueItems": st.booleans(),
            "minProperties": small,
            "maxProperties": small,
            "required": names,
            "dependentRequired": st.dictionaries(st.sampled_from("abc"), names),
            "dependentSchemas": named,
            "properties": named,
            "patternProperties": st.dictionaries(
                st.sampled_from(["^a", "[bc]"]), inner, max_size=2
            ),
            "additionalProperties": inner,
            "propertyNames": inner,
            "prefixItems": some,
            "items": inner,
            "contains": inner,
            "minContains": small,
            "maxContains": small,
            "allOf": some,
            "anyOf": some,
            "oneOf": some,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
        },
    )


schemas = st.recursive(st.booleans() | _keywords(st.booleans()), _keywords, max_leaves=8)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(schemas, values)
def test_what_fits_is_what_an_independent_validator_says(schema: Any, value: Any) -> None:
    expected = Draft202012Validator(schema).is_valid(value)
    assert (not check(read_schema(schema).nodes, value)) is expected


TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "required": ["name"],
            "properties": {"children": {"items": {"$ref": "#/$defs/node"}}},
        }
    },
    "$ref": "#/$defs/node",
}


@pytest.mark.parametrize(
    ("schema", "value", "faults"),
    [
        # Every missing property has its own pointer.
        ({"required": ["a", "b"]}, {}, [("/a", "missing"), ("/b", "missing")]),
        # So has every one too many.
        (
            {"properties": {"a": True}, "additionalProperties": False},
            {"a": 1, "c": 1, "b": 1},
            [("/b", "extra_forbidden"), ("/c", "extra_forbidden")],
        ),
        # A wrong type is told once: what else is asked of the value says nothing.
        ({"type": "string", "enum": ["a"]}, 1, [("", "type")]),
        # Pointers are escaped.
        ({"properties": {"a/b~": {"type": "null"}}}, {"a/b~": 1}, [("/a~1b~0", "type")]),
        # References lead into the value.
        (TREE, {"name": "x", "children": [{"name": "y"}, {}]}, [("/children/1/name", "missing")]),
        # Of several forms the one whose constant fits was meant.
        (
            {
                "anyOf": [
                    {"properties": {"kind": {"const": "a"}}, "required": ["x"]},
                    {"properties": {"kind": {"const": "b"}}, "required": ["y", "z"]},
                ]
            },
            {"kind": "b"},
            [("/y", "missing"), ("/z", "missing")],
        ),
        # When none has the right type, one fault names them all.
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, [("", "any_of")]),
        ({"oneOf": [True, True]}, 1, [("", "one_of")]),
        ({"oneOf": [{"type": "string"}, False]}, 1, [("", "one_of")]),
        ({"patternProperties": {"^a": {"type": "null"}}}, {"ab": 1, "b": 1}, [("/ab", "type")]),
        (
            {"patternProperties": {"^a": True}, "additionalProperties": {"type": "null"}},
            {"a": 1, "b": 1},
            [("/b", "type")],
        ),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, [("/ab", "property_names")]),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, [("/b", "missing")]),
        ({"dependentSchemas": {"a": {"required": ["c"]}}}, {"a": 1}, [("/c", "missing")]),
        (
            {"prefixItems": [{"type": "null"}], "items": False},
            [1, 2],
            [("/0", "type"), ("/1", "false_schema")],
        ),
        ({"contains": True, "maxContains": 1}, [1, 2], [("", "contains")]),
        ({"not": {"type": "integer"}}, 1, [("", "not")]),
        (
            {"if": {"type": "integer"}, "then": {"minimum": 2}, "else": {"const": "a"}},
            1,
            [("", "minimum")],
        ),
        (
            {"if": {"type": "integer"}, "then": {"minimum": 2}, "else": {"const": "a"}},
            "b",
            [("", "const")],
        ),
        # Keywords of objects and arrays say nothing of other values.
        (
            {
                "properties": {"a": False},
                "patternProperties": {"a": False},
                **dict.fromkeys(("additionalProperties", "propertyNames"), False),
                "required": ["a"],
                "dependentRequired": {"a": ["b"]},
                "dependentSchemas": {"a": False},
                "prefixItems": [False],
                "items": False,
                "contains": False,
            },
            "text",
            [],
        ),
        ({"const": True}, 1, [("", "const")]),
        ({"const": [1, {"a": 2}]}, [1.0, {"a": 2}], []),
        ({"const": [1]}, [2], [("", "const")]),
        # What is not there asks nothing.
        ({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"a": False}}, {"c": 1}, []),
        ({"items": {"multipleOf": 0.1}}, [0.3, 0.35], [("/1", "multiple_of")]),
        ({"contains": {"const": 1}}, [2], [("", "contains")]),
        ({"uniqueItems": True}, [1, {"a": [1]}, {"a": [1.0]}], [("", "unique_items")]),
        ({"uniqueItems": True}, [1, True, "1", [1]], []),
        ({"maximum": 5}, 10**400, [("", "maximum")]),
        (False, 1, [("", "false_schema")]),
    ],
)
def test_every_fault_has_its_pointer_and_keyword(
    schema: Any, value: Any, faults: list[tuple[str, str]]
) -> None:
    found = check(read_schema(schema).nodes, value)
    assert [(fault.place.pointer, fault.code) for fault in found] == faults


def test_expectations_do_not_repeat_the_value() -> None:
    schema = read_schema({"properties": {"a": {"type": "integer"}, "b": {"enum": ["x"]}}})
    found = check(schema.nodes, {"a": "canary", "b": "canary"})
    assert len(found) == 2
    assert all("canary" not in fault.message for fault in found)


def test_a_schema_that_doubles_with_every_level_is_given_up() -> None:
    twice = {"allOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}
    schema = read_schema({"$defs": {"n": {"properties": {"a": twice}}}, **twice})
    value: dict[str, Any] = {}
    for _ in range(40):
        value = {"a": value}
    with pytest.raises(OverBudgetError):
        check(schema.nodes, value)


def test_a_value_that_is_too_deep_is_given_up() -> None:
    schema = read_schema({"items": {"$ref": "#"}})
    value: list[Any] = []
    for _ in range(100):
        value = [value]
    with pytest.raises(OverBudgetError):
        check(schema.nodes, value)


def test_a_value_with_too_many_parts_is_given_up() -> None:
    schema = read_schema({"items": {"type": "integer"}})
    with pytest.raises(OverBudgetError):
        check(schema.nodes, list(range(160_000)))


# Beside a plain loop of Python on the same processor, which may be busy with other things.
MOST_LOOPS, TRIES = 100, 3


def loop_seconds() -> float:
    """Return the processor's time for a loop of a million steps."""
    begin = thread_time()
    for _ in range(1_000_000):
        pass
    return thread_time() - begin


def loops_of(bomb: Bomb, is_ours: bool) -> float:
    """Return how many loops the judgement of a bomb takes as long as."""
    loop, begin = loop_seconds(), thread_time()
    with suppress(OverBudgetError, SchemaFaultError):
        judge(bomb.text, None, read_schema(bomb.schema, is_ours))
    return (thread_time() - begin) / loop


@pytest.mark.slow
@pytest.mark.parametrize("is_ours", [True, False], ids=["registered", "in a request"])
def test_no_keyword_takes_more_work_than_one_answer_may(is_ours: bool) -> None:
    slow = [
        bomb.name
        for bomb in all_bombs()
        if all(loops_of(bomb, is_ours) > MOST_LOOPS for _ in range(TRIES))
    ]
    assert slow == []


def test_a_check_ends_when_it_is_late() -> None:
    looks = iter([False, False, True])
    schema = read_schema({"items": {"type": "integer"}})
    with pytest.raises(OverBudgetError):
        check(schema.nodes, list(range(20_000)), is_late=lambda: next(looks))


def test_the_same_check_in_time_ends_by_itself() -> None:
    schema = read_schema({"items": {"type": "integer"}})
    assert check(schema.nodes, list(range(20_000))) == []


def test_patterns_of_one_schema_share_a_bound() -> None:
    read_schema({"allOf": [{"pattern": "(a{1,1000})"}] * 40})
    with pytest.raises(SchemaFaultError, match="fewer or simpler patterns"):
        read_schema({"allOf": [{"pattern": "(a{1,1000})"}] * 60})
    with pytest.raises(SchemaFaultError, match="fewer or simpler patterns"):
        read_schema({"patternProperties": {f"a{n}": True for n in range(501)}})
