"""Reading JSON strictly: one value or a located refusal."""

import pytest

from failsoft.parsing.strict import JsonTextError, parse_json


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a": [1, 2.5, null, true]}', {"a": [1, 2.5, None, True]}),
        (b"\xef\xbb\xbf[]", []),
        (b" 7 ", 7),
        (b'"\\u00e9"', "\u00e9"),
    ],
)
def test_json_is_read(raw: bytes, value: object) -> None:
    assert parse_json(raw) == value


@pytest.mark.parametrize(
    ("raw", "code", "line", "column"),
    [
        (b"", "not_json", 1, 1),
        (b'{"a":\n  tru}', "not_json", 2, 6),
        ('{"\u00e9\u00e9": x}'.encode(), "not_json", 1, 8),  # characters, not bytes
        (b"[1] x", "not_json", 1, 5),
        (b"[NaN]", "not_json", 1, 2),
        (b'{"a":1,"a":2}', "duplicate_key", 1, 12),
        (b'"\\ud800"', "not_json", 1, 8),
        (b'"\xff"', "not_json", 1, 2),
        (b"9" * 5000, "not_json", 1, 4302),
        (b"[" * 1000, "too_deep", 1, 202),
    ],
)
def test_anything_else_is_refused_with_its_place(
    raw: bytes, code: str, line: int, column: int
) -> None:
    with pytest.raises(JsonTextError) as refused:
        parse_json(raw)
    error = refused.value
    assert (error.code, error.line, error.column) == (code, line, column)
    assert str(error).startswith(f"line {line}, column {column}: ")


def test_more_than_the_limit_is_not_even_read() -> None:
    with pytest.raises(JsonTextError, match="at most 3 bytes"):
        parse_json(b"1234", limit=3)


def test_a_refusal_has_the_shape_of_a_located_violation() -> None:
    with pytest.raises(JsonTextError) as refused:
        parse_json(b"[")
    keys = ["path", "code", "message", "line", "column"]
    assert list(refused.value.as_dict()) == keys
