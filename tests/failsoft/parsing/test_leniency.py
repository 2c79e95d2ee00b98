"""Leniency towards types on any pydantic model: one lenient reading, always told (X-20)."""

from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from failsoft.parsing.leniency import Softened, soften


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    part_id: str
    count: int = 1


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["order"] = "order"
    colour: Colour = Colour.RED
    tags: list[str] = Field(default_factory=list)
    needed: list[str] | None = None
    parts: list[Part] = Field(default_factory=list)
    options: dict[str, Any] = Field(default_factory=dict)
    lines: list[int] = [1]


class Strict(BaseModel):
    rows: list[int]
    grid: list[list[int]] = []


ORDER = TypeAdapter(Order)

# Each row: what was written, what is taken, and what is told.
TAKEN = [
    ({"colour": "RED"}, {"colour": "red"}, [("/colour", "letter_case")]),
    ({"kind": "Order"}, {"kind": "order"}, [("/kind", "letter_case")]),
    ({"tags": "x"}, {"tags": ["x"]}, [("/tags", "scalar_for_list")]),
    ({"tags": None}, {"tags": []}, [("/tags", "null_for_list")]),
    ({"lines": 3}, {"lines": [3]}, [("/lines", "scalar_for_list")]),
    ({"lines": ["3", 4.0]}, {"lines": [3, 4]},
     [("/lines/0", "numeric_string"), ("/lines/1", "integral_float")]),
    ({"parts": [{"part_id": 7}]}, {"parts": [{"part_id": "7"}]},
     [("/parts/0/part_id", "integer_id")]),
    ({"parts": [{"part_id": "a", "count": "2"}]}, {"parts": [{"part_id": "a", "count": 2}]},
     [("/parts/0/count", "numeric_string")]),
    ({"options": '{"a": 1}'}, {"options": {"a": 1}}, [("/options", "json_string")]),
    ({"x/y": 1, "tags": []}, {"tags": []}, [("/x~1y", "unknown_key_dropped")]),
    ({"colour": "Blue", "tags": "t", "more": 1}, {"colour": "blue", "tags": ["t"]},
     [("/colour", "letter_case"), ("/tags", "scalar_for_list"), ("/more", "unknown_key_dropped")]),
]  # fmt: skip

# What has no single lenient reading stays as it was written.
LEFT = [
    {"colour": "green"},
    {"tags": {"a": 1}},
    {"lines": [True]},
    {"lines": ["three"]},
    {"lines": [2.5]},
    {"lines": ["1e3"]},
    {"options": "{'a': 1}"},
    {"options": "[1]"},
    {"options": None},
    {"parts": [{"part_id": True}]},
    {"parts": [{"part_id": 1.5}]},
    {"tags": [5]},
]


@pytest.mark.parametrize(("written", "taken", "leniencies"), TAKEN)
def test_x_20_one_lenient_reading_is_taken_and_told(
    written: dict[str, Any], taken: dict[str, Any], leniencies: list[tuple[str, str]]
) -> None:
    value, done = soften(written, ORDER)
    assert value == taken
    assert done == [Softened(path, kind) for path, kind in leniencies]
    ORDER.validate_python(value)


@pytest.mark.parametrize("written", LEFT)
def test_x_20_anything_else_stays_as_it_was_written(written: dict[str, Any]) -> None:
    assert soften(written, ORDER) == (written, [])


def test_null_for_a_list_without_a_default_stays() -> None:
    for written in ({"rows": None}, {"rows": [], "grid": [None]}):
        assert soften(written, TypeAdapter(Strict)) == (written, [])


def test_a_valid_value_is_not_touched() -> None:
    written = {"colour": "blue", "parts": [{"part_id": "a"}]}
    value, done = soften(written, ORDER)
    assert (value, done) == (written, [])


def test_what_was_given_is_not_changed() -> None:
    written = {"tags": "x"}
    soften(written, ORDER)
    assert written == {"tags": "x"}
