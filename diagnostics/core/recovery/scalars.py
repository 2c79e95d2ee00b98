"""Values without quotes: numbers and literals of JSON, JSON5 and Python, and single words."""

import math
import re
from dataclasses import dataclass
from typing import Any

# Longer integers cannot be written out again (the limit of Python's own conversion).
MAX_DIGITS = 4300
LITERALS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
}
_PYTHON_ONLY = frozenset({"True", "False", "None"})
_ANY_CASE = re.compile(r"(?i:true|false|null|none)(?![\w-])")
# Words that mean a value, an absence or a part left out in some language: never a plain string.
_NO_WORDS = frozenset(
    {
        "undefined",
        "nan",
        "inf",
        "infinity",
        "nil",
        "void",
    }
    | {"yes", "no", "on", "off", "y", "n", "t", "f", "tr", "tru", "fa", "fal", "fals"}
    | {"nu", "nul", "non", "or", "and", "not"}
    | {"etc", "rest", "omitted", "unchanged", "snip", "snipped", "truncated", "elided"}
)
_WORD = re.compile(r"(?=[_-]*[^\W_])(?!(?i:true|false|null|none)[\w-])[^\W\d](?:[\w-]*\w)?")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_LOOSE_NUMBER = re.compile(
    r"([+-]?)(?:(0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)|(0[oO][0-7]+|0[bB][01]+)"
    r"|((?:(?:0|[1-9]\d*(?:_\d+)*)(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+)?))",
    re.ASCII,
)


def begins_literal(text: str, at: int) -> bool:
    """Whether a literal in any letter case stands at `at`."""
    return _ANY_CASE.match(text, at) is not None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value and the kind of repair it took to read it, if any."""

    value: Any
    kind: str | None = None
    is_word: bool = False
    is_number: bool = False


def read_scalar(token: str) -> Scalar | None:
    """Read one bare token; None when it has no single reading."""
    if token in LITERALS:
        return Scalar(LITERALS[token], "python_literal" if token in _PYTHON_ONLY else None)
    if _ANY_CASE.fullmatch(token):
        literal = LITERALS.get(token.lower())
        return Scalar(literal, "literal_case")
    if _WORD.fullmatch(token):
        is_plain = token.lower() not in _NO_WORDS
        return Scalar(token, "bare_value", is_word=True) if is_plain else None
    return _read_number(token)


def _read_number(token: str) -> Scalar | None:
    if len(token) > MAX_DIGITS:
        return None
    if _JSON_NUMBER.fullmatch(token):
        return _number(token, None)
    found = _LOOSE_NUMBER.fullmatch(token)
    if found is None:
        return None
    sign, hexadecimal, based, decimal = found.groups()
    if decimal is None:
        value = int((hexadecimal or based).replace("_", ""), 0)
        return Scalar(-value if sign == "-" else value, "number_form", is_number=True)
    return _number(sign.replace("+", "") + decimal.replace("_", ""), "number_form")


def _number(digits: str, kind: str | None) -> Scalar | None:
    if not any(mark in digits for mark in ".eE"):
        return Scalar(int(digits), kind, is_number=True)
    value = float(digits)
    return Scalar(value, kind, is_number=True) if math.isfinite(value) else None
