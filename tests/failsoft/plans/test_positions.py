"""Positions: a JSON pointer becomes a line and a column."""

import json
import tracemalloc
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from failsoft.parsing.faults import line_and_column
from failsoft.parsing.strict import locate, locate_faults

_TEXT = """{
  "a": {"b~/c": [1, {"d": "x, ]}"}]},
  "\\u00e9\\n": null
}"""


def test_values_are_found_by_their_pointers() -> None:
    wanted = {"", "/a", "/a/b~0~1c/1/d", "/\u00e9\n", "/nowhere"}
    places = {
        pointer: line_and_column(_TEXT, offset) for pointer, offset in locate(_TEXT, wanted).items()
    }
    assert places == {"": (1, 1), "/a": (2, 8), "/a/b~0~1c/1/d": (2, 27), "/\u00e9\n": (3, 15)}


def test_a_missing_value_stands_where_its_holder_begins() -> None:
    (fault,) = locate_faults(_TEXT, [{"path": "/a/b~0~1c/1/z/0", "code": "c", "message": "m"}])
    assert (fault["line"], fault["column"]) == (2, 21)


_values = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_a_long_text_is_passed_over_in_little_memory() -> None:
    text = json.dumps(["x" * 4_000_000, "\\" * 1_000, 1])
    tracemalloc.start()
    offsets = locate(text, {"/2"})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert text[offsets["/2"] :] == "1]"
    # The text itself is copied once as a token.
    assert peak < 3 * len(text)


@given(_values, st.integers(0, 2))
def test_what_stands_at_a_place_is_the_value(value: object, indent: int) -> None:
    text = json.dumps(value, indent=indent or None)
    pointers: dict[str, object] = {}
    _collect(value, "", pointers)
    offsets = locate(text, set(pointers))
    assert offsets.keys() == pointers.keys()
    decoder = json.JSONDecoder()
    for pointer, offset in offsets.items():
        assert decoder.raw_decode(text, offset)[0] == pointers[pointer]


def _collect(value: object, pointer: str, values: dict[str, object]) -> None:
    values[pointer] = value
    items: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        items = value.items()
    if isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        part = str(key).replace("~", "~0").replace("/", "~1")
        _collect(item, f"{pointer}/{part}", values)
