"""Keywords that check one value alone: each row has its condition and its expectation.

Expectations are built from the schema, never from the value.
"""

import json
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import re2

MAX_PATTERN = 1000
MAX_SHOWN = 200


class BadArgumentError(ValueError):
    """the value of a keyword is not what it must be; the text says what it must be"""


def same(first: Any, second: Any) -> bool:  # noqa: ANN401 - any JSON
    """Return whether two values are equal by JSON Schema."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            same(value, second[key]) for key, value in first.items()
        )
    return bool(first == second)


def are_unique(items: list[Any]) -> bool:
    """Whether no two items are the same, in linear time."""
    return len({json.dumps(_comparable(item), sort_keys=True) for item in items}) == len(items)


def _comparable(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if is_integer(value):
        # As text: converting huge integers to decimal is expensive.
        return hex(int(value))
    if isinstance(value, str):
        return f"={value}"
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if isinstance(value, dict):
        return {key: _comparable(item) for key, item in value.items()}
    return value


def is_number(value: object) -> bool:
    """Whether a value is a number of JSON."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_integer(value: object) -> bool:
    """Whether a value is a whole number, however it is written."""
    return is_number(value) and (isinstance(value, int) or value.is_integer())  # type: ignore[attr-defined] # a float


TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": is_integer,
    "number": is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def type_of(value: object) -> str:
    """Return the JSON type of a value."""
    return next(name for name, holds in TYPES.items() if holds(value))


def compile_pattern(pattern: object) -> Any:  # noqa: ANN401 - re2 has no types
    """Compile a pattern under RE2, whose search is linear in the text."""
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
        raise BadArgumentError(f"a pattern of at most {MAX_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise BadArgumentError(
            "a pattern valid in RE2: no look-around, no back-references"
        ) from error


def natural(argument: Any) -> int:  # noqa: ANN401 - any JSON
    """Read a count: an integer from 0."""
    if not is_integer(argument) or argument < 0:
        raise BadArgumentError("an integer from 0")
    return int(argument)


def _type_names(argument: object) -> list[str]:
    names = [argument] if isinstance(argument, str) else argument
    if not isinstance(names, list) or not names:
        raise BadArgumentError("a type or a list of types")
    if not all(isinstance(name, str) and name in TYPES for name in names):
        raise BadArgumentError(f"one of {', '.join(TYPES)}")
    return names


def _options(argument: object) -> list[Any]:
    if not isinstance(argument, list) or not argument:
        raise BadArgumentError("a list with at least one value")
    return argument


def _number(argument: Any) -> float:  # noqa: ANN401 - any JSON
    if not is_number(argument):
        raise BadArgumentError("a number")
    return argument  # type: ignore[no-any-return] # a number


def _positive(argument: Any) -> float:  # noqa: ANN401 - any JSON
    if not is_number(argument) or argument <= 0:
        raise BadArgumentError("a number > 0")
    return argument  # type: ignore[no-any-return] # a number


def _boolean(argument: object) -> bool:
    if not isinstance(argument, bool):
        raise BadArgumentError("true or false")
    return argument


def _is_multiple(value: float, step: float) -> bool:
    return _exact(value) % _exact(step) == 0


def _exact(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


class Assertion(NamedTuple):
    """How to read its argument, the type of value it applies to (None: all), and its check."""

    read: Callable[[Any], Any]
    judges: str | None
    holds: Callable[[Any, Any], bool]
    expectation: str


def _size(judges: str, holds: Callable[[int, int], bool], expectation: str) -> Assertion:
    return Assertion(natural, judges, lambda value, size: holds(len(value), size), expectation)


ASSERTIONS: Mapping[str, Assertion] = {
    "type": Assertion(
        _type_names, None, lambda value, names: any(TYPES[name](value) for name in names), "{}"
    ),
    "enum": Assertion(
        _options, None, lambda value, options: any(same(it, value) for it in options), "one of {}"
    ),
    "const": Assertion(lambda argument: argument, None, same, "{}"),
    "minimum": Assertion(_number, "number", operator.ge, "at least {}"),
    "maximum": Assertion(_number, "number", operator.le, "at most {}"),
    "exclusiveMinimum": Assertion(_number, "number", operator.gt, "more than {}"),
    "exclusiveMaximum": Assertion(_number, "number", operator.lt, "less than {}"),
    "multipleOf": Assertion(_positive, "number", _is_multiple, "a multiple of {}"),
    "minLength": _size("string", operator.ge, "at least {} characters"),
    "maxLength": _size("string", operator.le, "at most {} characters"),
    "minItems": _size("array", operator.ge, "at least {} items"),
    "maxItems": _size("array", operator.le, "at most {} items"),
    "minProperties": _size("object", operator.ge, "at least {} properties"),
    "maxProperties": _size("object", operator.le, "at most {} properties"),
    "pattern": Assertion(
        compile_pattern,
        "string",
        lambda text, pattern: pattern.search(text) is not None,
        "text that matches {}",
    ),
    "uniqueItems": Assertion(
        _boolean,
        "array",
        lambda items, is_wanted: not is_wanted or are_unique(items),
        "items that differ from each other",
    ),
}


def word_expectation(keyword: str, argument: object) -> str:
    """Return what a keyword expects, cut."""
    options = argument if isinstance(argument, list) else [argument]
    if keyword == "type":
        shown = " or ".join(map(str, options))
    else:
        shown = ", ".join(json.dumps(option, ensure_ascii=False) for option in options)
    cut = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]} ..."
    return f"expected {ASSERTIONS[keyword].expectation.format(cut)}"
