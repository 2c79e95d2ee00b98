"""Answers and schemas that mean harm: small to send, and much work for a careless checker."""

import json
import random
import string
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.diagnostics.builders import wire_event


class Bomb(NamedTuple):
    """A schema of at most 64 KiB, and the text of an answer."""

    name: str
    schema: Any
    text: str

    @property
    def answer(self) -> dict[str, Any]:
        """The item that posts it, with its schema."""
        return wire_event(
            name="answered",
            node="plan",
            text=self.text,
            answer_schema=self.schema,
            **dict.fromkeys(("parse_error_type", "validation_errors", "raw_output_preview")),
        )

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of a span that reports it."""
        part = {"type": "text", "content": self.text}
        message = {"role": "assistant", "parts": [part], "finish_reason": "stop"}
        return {
            "gen_ai.output.messages": json.dumps([message]),
            "gen_ai.request.structured_output_schema": json.dumps(self.schema),
        }


def draw(count: int, letters: str) -> str:
    """Return a text of letters without any order, the same each time."""
    return "".join(random.Random(1).choices(letters, k=count))


def all_bombs() -> Iterator[Bomb]:
    """Yield bombs of every keyword that a value can make expensive."""
    yield from _options()
    yield from _texts_and_numbers()
    yield from _objects()
    yield from _arrays()
    yield from _forms()


def _bomb(name: str, schema: Any, value: Any) -> Bomb:
    return Bomb(name, schema, json.dumps(value, separators=(",", ":")))


def _options() -> Iterator[Bomb]:
    numbers = list(range(10_000, 18_900))
    yield _bomb("enum", {"items": {"enum": numbers}}, [5] * 1_500)
    colliding = [n * (2**61 - 1) + 7 for n in range(1, 2_600)]
    yield _bomb("enum of equal hashes", {"items": {"enum": colliding}}, colliding * 10)
    long = "x" * 500_000
    cases = [f"option {n}" for n in range(3_500)]
    yield _bomb("enum without letter case", {"items": {"enum": cases}}, ["OPTION X"] * 5_000)
    yield _bomb("enum of a long text", {"anyOf": [{"enum": ["a"]}] * 3_000}, [long])
    yield _bomb("enum and a long text", {"allOf": [{"enum": ["a"]}] * 3_000}, long + "}")
    wide = {"allOf": [{"enum": [[1]]}] * 2_400}
    yield _bomb("enum and a large array", wide, [0] * 200_000)
    yield _bomb("const and a large array", {"allOf": [{"const": [0] * 9}] * 800}, [0] * 400_000)
    same = [0] * 9_900
    yield _bomb("const of a large array", {"items": {"const": same}}, [same] * 50)
    yield _bomb("type", {"items": {"type": ["string"] * 6_000}}, [1] * 50_000)


def _texts_and_numbers() -> Iterator[Bomb]:
    word = "a" * 1_000_000
    states = {"pattern": "((a|b)*a(a|b){200}c)|((b|a)*b(a|b){200}d)"}
    yield _bomb("pattern", {"items": {"allOf": [states] * 60}}, [draw(1_000_000, "ab")])
    names = {"patternProperties": {f"a*{n}{'a?' * 20}$": True for n in range(400)}}
    yield _bomb("patternProperties", {"items": names}, [{word: 1}])
    extra = {**names, "additionalProperties": {"type": "string"}}
    yield _bomb("additionalProperties", {"items": extra}, [{word[:400_000]: 1, "b": 2}])
    lengths = {"propertyNames": {"allOf": [{"pattern": "(a|b)*c$"}] * 400}}
    yield _bomb("propertyNames", lengths, {word: 1})
    steps = [{"multipleOf": 5e-324}] * 2_000
    yield _bomb("multipleOf", {"items": {"allOf": steps}}, [1.7e308] * 50)
    bounds = {"allOf": [{"minimum": 10**4_000}, {"maximum": 1}, {"multipleOf": 3}] * 10}
    yield Bomb("numbers of many digits", {"items": bounds}, f"[{'9' * 4_000},{'9' * 500_000}]")


def _objects() -> Iterator[Bomb]:
    names = [
        f"{a}{b}{c}" for a in string.ascii_letters[:44] for b in "abcdefghij" for c in "abcdefghij"
    ]
    empty: list[dict[str, int]] = [{}] * 49_000
    yield _bomb("properties", {"items": {"properties": dict.fromkeys(names, True)}}, empty)
    closed = {"properties": dict.fromkeys(names, True), "additionalProperties": False}
    yield _bomb("additionalProperties and many names", {"items": closed}, empty)
    beside = {"dependentSchemas": dict.fromkeys(names, True)}
    yield _bomb("dependentSchemas", {"items": beside}, empty)
    needs = {"dependentRequired": {name: ["a"] for name in names[:3_000]}}
    yield _bomb("dependentRequired", {"items": needs}, empty)
    yield _bomb("required", {"items": {"required": names}}, empty)


def _arrays() -> Iterator[Bomb]:
    unique = {"allOf": [{"uniqueItems": True}] * 2_000}
    yield _bomb("uniqueItems", unique, [[*range(50_000)]])
    yield _bomb("uniqueItems of long texts", unique, ["x" * 500_000, "y" * 500_000])
    yield _bomb("contains", {"allOf": [{"contains": {"const": 1}}] * 2_000}, [0] * 400_000)
    yield _bomb("items", {"allOf": [{"items": {"type": "null"}}] * 2_000}, [0] * 400_000)
    first = {"prefixItems": [{"type": "null"}] * 3_000}
    yield _bomb("prefixItems", {"items": first}, [[0] * 3_000] * 100)


def _forms() -> Iterator[Bomb]:
    doubled = {"anyOf": [{"$ref": "#/$defs/n"}] * 2}
    inner = {"properties": {"a": doubled}, "required": ["b"]}
    deep: dict[str, Any] = {}
    for _ in range(60):
        deep = {"a": deep}
    yield _bomb("$ref", {"$defs": {"n": inner}, **doubled}, deep)
    many = {"required": [f"{n}" for n in range(6_000)]}
    forms: Any = many
    for keyword in ("anyOf", "oneOf", "allOf") * 4:
        forms = {keyword: [forms]}
    yield _bomb("faults of nested forms", {"items": forms}, [{}] * 20_000)
    choices = {"oneOf": [{"type": "string"}] * 3_000}
    yield _bomb("oneOf", {"items": choices}, [0] * 50_000)
    denied = {"not": {"anyOf": [{"minimum": 2}] * 3_000}}
    yield _bomb("not", {"items": denied}, [0] * 50_000)
    branch = {"if": {"allOf": [{"minimum": 0}] * 1_500}, "then": {"not": True}, "else": False}
    yield _bomb("if", {"items": branch}, [0] * 50_000)
