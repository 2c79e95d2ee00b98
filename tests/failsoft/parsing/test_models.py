"""`recover` with a model of pydantic: its instance, or every error with its place."""

from dataclasses import dataclass
from datetime import date
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Literal, assert_type

import pytest
from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator

from failsoft import Recovered, RefusedAnswer, recover


class Grade(StrEnum):
    GOOD = "good"
    BAD = "bad"


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    price: float = Field(gt=0)


class Receipt(BaseModel):
    on: date
    grade: Grade = Grade.GOOD
    items: list[Item]
    note: str | None = Field(default=None, alias="remark")

    @field_validator("items")
    @classmethod
    def _some(cls, items: list[Item]) -> list[Item]:
        if not items:
            raise ValueError("a receipt has items")
        return items


def places(answer: object) -> list[tuple[str | None, str | None, int | None, int | None]]:
    assert isinstance(answer, RefusedAnswer)
    return [(error.path, error.code, error.line, error.column) for error in answer.errors]


def test_a_damaged_answer_becomes_an_instance() -> None:
    text = """Here it is:
```json
{'on': '2026-11-26', 'grade': 'bad', 'items': [{'name': 'tea', 'price': 2.5,}]}
```"""
    answer = recover(text, schema=Receipt)
    assert not isinstance(answer, RefusedAnswer)
    assert_type(answer, Recovered[Receipt])
    assert answer.value == Receipt(
        on=date(2026, 11, 26), grade=Grade.BAD, items=[Item(name="tea", price=2.5)]
    )
    assert {repair.kind for repair in answer.repairs} >= {"fence", "trailing_comma"}


def test_each_error_has_the_path_of_the_model_and_its_place_in_the_answer() -> None:
    text = """Sure:
{"on": "soon",
 "items": [{"name": "tea", "price": -1},
           {"name": "milk", "prise": 2}],}"""
    answer = recover(text, schema=Receipt)
    assert places(answer) == [
        ("/on", "date_from_datetime_parsing", 2, 8),
        ("/items/0/price", "greater_than", 3, 37),
        ("/items/1/price", "missing", 4, 12),
        ("/items/1/prise", "extra_forbidden", 4, 29),
    ]
    assert isinstance(answer, RefusedAnswer)
    assert answer.error_type == "schema_invalid"
    assert answer.message.startswith("line 2, column 8: expected a valid date")
    assert answer.message.splitlines()[1:] == ['{"on": "soon",', "       ^"]


def test_an_error_of_the_whole_value_and_of_an_own_rule_are_located_too() -> None:
    assert places(recover('\n["a"]', schema=Receipt)) == [("", "model_type", 2, 1)]
    found = recover('{"on": "2026-11-26",\n "items": []}', schema=Receipt)
    assert places(found) == [("/items", "value_error", 2, 11)]
    assert isinstance(found, RefusedAnswer)
    assert "a receipt has items" in found.message


def test_what_cannot_be_read_has_one_error_with_its_place() -> None:
    assert places(recover('{"on": "2026', schema=Receipt)) == [("", "truncated", 1, 8)]


@pytest.mark.parametrize("schema", [None, Receipt])
def test_no_answer_is_refused_as_empty(schema: type[Receipt] | None) -> None:
    answer = recover(None) if schema is None else recover(None, schema=schema)
    assert isinstance(answer, RefusedAnswer)
    assert answer.error_type == "empty_output"


def test_a_finish_reason_counts_with_a_schema() -> None:
    text = '{"on": "2026-11-26", "items": [{"name": "tea", "price": 1}'
    answer = recover(text, "length", schema=Receipt)
    assert isinstance(answer, RefusedAnswer)
    assert answer.error_type == "truncated"


@pytest.mark.parametrize("note", [r"one\fpage", r"\frac{1}{2}", r"\beta \times 2", r"a\b\b"])
def test_valid_json_with_escapes_that_are_rarely_meant_has_places_too(note: str) -> None:
    text = f'{{"on": "soon", "remark": "{note}", "items": [{{"name": "tea", "price": 1}}]}}'
    assert places(recover(text, schema=Receipt)) == [("/on", "date_from_datetime_parsing", 1, 8)]


@dataclass
class Leg:
    city: str
    days: int


def test_a_type_that_pydantic_knows_is_read_like_a_model() -> None:
    legs = recover("[{'city': 'Oslo', 'days': 2},]", schema=list[Leg])
    assert not isinstance(legs, RefusedAnswer)
    assert_type(legs, Recovered[list[Leg]])
    assert legs.value == [Leg("Oslo", 2)]
    missing = recover('[{"city": "Oslo", "days": 1},\n {"city": "Moss"}]', schema=list[Leg])
    assert places(missing) == [("/1/days", "missing", 2, 2)]


class Plain:
    city: str


class OfPydantic1(Plain):
    __get_validators__ = ()


NO_SCHEMAS = [Plain, OfPydantic1, {"type": "object"}, "Receipt", Leg("Oslo", 2)]


@pytest.mark.parametrize("schema", NO_SCHEMAS)
@pytest.mark.parametrize("text", ["no", '{"a": 1}'])
def test_a_schema_that_is_no_type_of_pydantic_is_named_whatever_the_answer(
    schema: Any, text: str
) -> None:
    with pytest.raises(TypeError, match="schema: expected a pydantic model or a type it knows"):
        recover(text, schema=schema)


def test_a_type_that_pydantic_refuses_is_named_with_its_reason() -> None:
    class NoSchema:
        pass

    with pytest.raises(TypeError, match="Unable to generate pydantic-core schema"):
        recover("{}", schema=NoSchema)


class Reason(IntEnum):
    MAX_TOKENS = 2


def test_what_is_no_text_is_named() -> None:
    blocks: Any = [{"type": "text", "text": "{}"}]
    with pytest.raises(TypeError, match=r"text: expected a string or None, got \[\{'type': 'text'"):
        recover(blocks)
    reason: Any = Reason.MAX_TOKENS
    with pytest.raises(TypeError, match=r"finish_reason: expected a string .*MAX_TOKENS"):
        recover('{"a": [1', reason)


def test_a_rule_with_a_long_message_is_an_error_too() -> None:
    trip = create_model("Trip", to=(str, Field(pattern="|".join(map(str, range(2_000))))))
    answer = recover('{"to": "nowhere"}', schema=trip)
    assert places(answer) == [("/to", "string_pattern_mismatch", 1, 8)]
    assert isinstance(answer, RefusedAnswer)
    assert answer.errors[0].message.startswith("String should match pattern '0|1|2")


class Cat(BaseModel):
    kind: Literal["cat"]
    name: str


class Dog(BaseModel):
    kind: Literal["dog"]
    age: int


class Tagged(BaseModel):
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]]


class Untagged(BaseModel):
    pet: Cat | Dog


def test_the_variant_of_a_union_is_no_part_of_the_path() -> None:
    answer = recover('{"pets": [{"kind": "dog", "age": "old"}, {"kind": "cat"}]}', schema=Tagged)
    assert places(answer) == [
        ("/pets/0/age", "int_parsing", 1, 34),
        ("/pets/1/name", "missing", 1, 42),
    ]
    untagged = recover('{"pet": {"kind": "dog", "age": "old"}}', schema=Untagged)
    assert places(untagged) == [
        ("/pet/kind", "literal_error", 1, 18),
        ("/pet/name", "missing", 1, 9),
        ("/pet/age", "int_parsing", 1, 32),
    ]


def test_an_error_of_a_key_is_located_at_the_key() -> None:
    prices = create_model("Prices", of=(dict[int, float], ...))
    answer = recover('{"of": {"1": 2, "tea": 1}}', schema=prices)
    assert places(answer) == [("/of/tea", "int_parsing", 1, 17)]
