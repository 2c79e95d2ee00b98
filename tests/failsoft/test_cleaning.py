"""What no column can keep is replaced; what breaks a bound is named."""

import math

import pytest

from failsoft.json_values import JSON, clean_json, clean_text, mend_surrogates


def nested(levels: int) -> JSON:
    value: JSON = 1
    for _ in range(levels):
        value = [value]
    return value


# value, where, code
BROKEN: list[tuple[JSON, str, str]] = [
    ({"a": {"b/c": [0, 2**53 + 1]}}, "/a/b~1c/1", "integer_range"),
    ({"a": math.inf}, "/a", "finite_number"),
    ([math.nan], "/0", "finite_number"),
    ({"k" * 201: 1}, "", "key_too_long"),
    (list(range(1001)), "/999", "too_many_nodes"),
    (nested(33), "/0" * 32, "too_deep"),
]


@pytest.mark.parametrize(("value", "path", "code"), BROKEN)
def test_the_first_broken_bound_is_named(value: JSON, path: str, code: str) -> None:
    cleaned, fault = clean_json(value)
    assert cleaned is None
    assert fault is not None
    assert (fault.path, fault.code) == (path, code)


def test_a_value_within_bounds_is_copied_with_storable_text() -> None:
    value: JSON = {"a\0": ["x\ud800", 1, 1.5, None, True, 2**53, {"b": "ok"}]}
    cleaned, fault = clean_json(value)
    assert fault is None
    assert cleaned == {"a\ufffd": ["x\ufffd", 1, 1.5, None, True, 2**53, {"b": "ok"}]}
    assert clean_json(nested(32))[1] is None


def test_pairs_of_surrogates_are_characters_and_stay() -> None:
    assert clean_text("😀") == "😀"


# body, mended
SURROGATES = [
    (rb'"\ud800"', rb'"\ufffd"'),
    (rb'"\uD83D\uDE00"', rb'"\uD83D\uDE00"'),
    (rb'"\\ud800"', rb'"\\ud800"'),
    (rb'"\\\ud800"', rb'"\\\ufffd"'),
    (rb'"\uDE00\uD83D"', rb'"\ufffd\ufffd"'),
    (b'"plain"', b'"plain"'),
]


@pytest.mark.parametrize(("body", "mended"), SURROGATES)
def test_lone_escaped_surrogates_are_mended(body: bytes, mended: bytes) -> None:
    assert mend_surrogates(body) == mended
