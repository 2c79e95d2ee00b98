"""What is refused when a schema is registered, and where."""

from typing import Any

import pytest

from diagnostics.ingest.schemas import SchemaFaultError, check, read_schema

DEEP: dict[str, Any] = {}
for _ in range(40):
    DEEP = {"items": DEEP}


@pytest.mark.parametrize(
    ("document", "path", "code"),
    [
        (7, "", "schema"),
        ({"properties": {"a": 7}}, "/properties/a", "schema"),
        ({"properties": []}, "/properties", "argument"),
        ({"anyOf": []}, "/anyOf", "argument"),
        ({"allOf": {}}, "/allOf", "argument"),
        ({"type": "text"}, "/type", "argument"),
        ({"type": []}, "/type", "argument"),
        ({"enum": []}, "/enum", "argument"),
        ({"minimum": "1"}, "/minimum", "argument"),
        ({"minimum": True}, "/minimum", "argument"),
        ({"multipleOf": 0}, "/multipleOf", "argument"),
        ({"minLength": -1}, "/minLength", "argument"),
        ({"uniqueItems": 1}, "/uniqueItems", "argument"),
        ({"required": "a"}, "/required", "argument"),
        ({"dependentRequired": []}, "/dependentRequired", "argument"),
        ({"dependentRequired": {"a": 1}}, "/dependentRequired", "argument"),
        ({"contains": {}, "minContains": "x"}, "/contains", "argument"),
        # Look-around and back-references can take for ever.
        ({"pattern": "(?=a)b"}, "/pattern", "argument"),
        ({"pattern": r"(a)\1"}, "/pattern", "argument"),
        ({"patternProperties": {"(?!x)": {}}}, "/patternProperties", "argument"),
        ({"pattern": "a" * 1001}, "/pattern", "argument"),
        # Nothing is fetched.
        ({"$ref": "https://example.org/s"}, "/$ref", "reference"),
        ({"$ref": "other.json#/a"}, "/$ref", "reference"),
        ({"$ref": "#/$defs/none"}, "/$ref", "reference"),
        ({"enum": [{}], "$ref": "#/enum/0"}, "/$ref", "reference"),
        # Would go round for ever.
        ({"$ref": "#"}, "/$ref", "reference"),
        ({"anyOf": [{"$ref": "#"}]}, "/anyOf/0/$ref", "reference"),
        # Would be passed over in silence.
        ({"nullable": True}, "/nullable", "unsupported"),
        ({"unevaluatedProperties": False}, "/unevaluatedProperties", "unsupported"),
        ({"$anchor": "a"}, "/$anchor", "unsupported"),
        ({"items": {"$id": "x"}}, "/items/$id", "unsupported"),
        ({"items": [{}]}, "/items", "schema"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "/$schema", "dialect"),
        (DEEP, "/items" * 32, "too_deep"),
        ({"description": "a" * 66_000}, "", "too_large"),
        ({"enum": [0] * 10_001}, "/enum/9998", "too_many_nodes"),
        ({"const": 2**60}, "/const", "integer_range"),
        ({"title": "a\0"}, "", "text"),
        ({"properties": {"\ud800": True}}, "", "text"),
    ],
)
def test_a_schema_that_cannot_be_kept_is_refused_with_its_place(
    document: Any, path: str, code: str
) -> None:
    with pytest.raises(SchemaFaultError) as refused:
        read_schema(document)
    assert (refused.value.path, refused.value.code) == (path, code)


def test_a_schema_may_refer_to_itself_inside_of_the_value() -> None:
    schema = read_schema({"properties": {"next": {"$ref": "#"}}, "required": ["id"]})
    (fault,) = check(schema.nodes, {"id": 1, "next": {}})
    assert fault.place.pointer == "/next/id"


def test_keywords_that_check_nothing_are_named() -> None:
    schema = read_schema(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "https://example.org/plan",
            "title": " Plan ",
            "properties": {"at": {"type": "string", "format": "date"}},
            "requierd": ["at"],
        }
    )
    assert schema.title == "Plan"
    assert schema.ignored == ("/properties/at/format", "/requierd")


def test_references_may_be_written_with_escapes() -> None:
    document = {"$defs": {"a/b c": {"type": "null"}}, "$ref": "#/$defs/a~1b%20c"}
    assert "/$defs/a~1b c" in read_schema(document).nodes


def test_what_somebody_else_checks_too_may_have_keywords_that_we_pass_over() -> None:
    document = {
        "$defs": {"a": {"$anchor": "here", "type": "string"}},
        "properties": {"a": {"$ref": "#here"}, "b": {"pattern": "(?=x)y", "type": "string"}},
        "patternProperties": {"^(?!a)": {"type": "null"}},
        "additionalProperties": False,
        "unevaluatedProperties": False,
    }
    schema = read_schema(document, is_ours=False)
    assert check(schema.nodes, {"a": 1, "b": "z", "c": 1}) == []
    (fault,) = check(schema.nodes, {"b": 1})
    assert (fault.place.pointer, fault.code) == ("/b", "type")
    with pytest.raises(SchemaFaultError):
        read_schema({"$ref": "https://example.org/s"}, is_ours=False)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"oneOf": [{"type": "string", "pattern": "^a"}, {"type": "string"}]}, "b"),
        ({"not": {"pattern": "^a"}}, "b"),
        ({"if": {"pattern": "^a"}, "then": {"type": "null"}}, "b"),
        ({"contains": {"pattern": "^a"}, "maxContains": 1}, ["b", "c"]),
        ({"$defs": {"a": {"$anchor": "a", "type": "null"}}, "not": {"$ref": "#a"}}, "b"),
        ({"type": "string", "nullable": True}, None),
    ],
)
def test_what_we_pass_over_refuses_no_valid_answer(schema: Any, value: Any) -> None:
    assert check(read_schema(schema, is_ours=False).nodes, value) == []


def test_a_union_beside_a_pattern_is_checked_still() -> None:
    forms = [{"type": "string", "pattern": "^a"}, {"type": "integer"}]
    nodes = read_schema({"oneOf": forms}, is_ours=False).nodes
    (fault,) = check(nodes, None)
    assert fault.code == "one_of"
