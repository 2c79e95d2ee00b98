"""Keywords that check one value alone: each row has its condition and its expectation.

Expectations are built from the schema, never from the value.
"""

import json
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import re2

from failsoft.expectations import case_hint, without_case

MAX_STEPS = 150_000
MAX_PATTERN = 1000
PATTERN_BYTES = 1 << 18
# What is done in the time of one step: characters compared or copied, and instructions of a
# pattern's program over characters, at worst.
STEP_CHARACTERS = 256
STEP_INSTRUCTIONS = 250
# Dividing exact fractions.
DIVISION_STEPS = 20
MAX_SHOWN = 200


class BadArgumentError(ValueError):
    """the value of a keyword is not what it must be; the text says what it must be"""


def identity(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Return a text that is the same for values that are equal by JSON Schema."""
    return json.dumps(_comparable(value), sort_keys=True)


def parts_of(value: Any, limit: int = MAX_STEPS) -> int:  # noqa: ANN401 - any JSON
    """Return the steps of comparing a value: its parts and the length of its texts.

    It counts no further than a little beyond `limit`.
    """
    steps, remaining = 0, [value]
    while remaining and steps <= limit:
        part = remaining.pop()
        steps += 1
        if isinstance(part, str):
            steps += len(part) // STEP_CHARACTERS
        elif isinstance(part, list):
            remaining += part
        elif isinstance(part, dict):
            remaining += part.values()
            steps += len(part) + sum(map(len, part)) // STEP_CHARACTERS
    return steps


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
    return next(name for name, holds in TYPES.items() if holds(value))


def compile_pattern(pattern: object) -> Any:  # noqa: ANN401 - re2 has no types
    """Compile a pattern under RE2, whose search is linear in the text."""
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
        raise BadArgumentError(f"a pattern of at most {MAX_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise BadArgumentError(
            "a pattern valid in RE2: no look-around, no back-references"
        ) from error


def natural(argument: Any) -> int:  # noqa: ANN401 - any JSON
    if not is_integer(argument) or argument < 0:
        raise BadArgumentError("an integer from 0")
    return int(argument)


def _type_names(argument: object) -> list[str]:
    names = [argument] if isinstance(argument, str) else argument
    if not isinstance(names, list) or not names:
        raise BadArgumentError("a type or a list of types")
    if not all(isinstance(name, str) and name in TYPES for name in names):
        raise BadArgumentError(f"one of {', '.join(TYPES)}")
    return list(dict.fromkeys(names))


class HashedOptions:
    """The values of `enum`, or the one of `const`."""

    def __init__(self, options: list[Any]) -> None:
        self._identities = frozenset(map(identity, options))
        self._folded = without_case(options)

    def __contains__(self, value: object) -> bool:
        return identity(value) in self._identities

    def hint(self, value: object) -> str:
        return case_hint(value, self._folded)


def _options(argument: object) -> HashedOptions:
    if not isinstance(argument, list) or not argument:
        raise BadArgumentError("a list with at least one value")
    return HashedOptions(argument)


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


def _exact(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def pattern_steps(pattern: Any, text: str) -> int:  # noqa: ANN401 - re2 has no types
    """Return the steps of searching a text for a compiled pattern, at worst."""
    return 1 + len(text) * int(pattern.programsize) // STEP_INSTRUCTIONS


class Assertion(NamedTuple):
    """How to read its argument, the type of value it applies to (None: all), and its check."""

    read: Callable[[Any], Any]
    judges: str | None
    holds: Callable[[Any, Any], bool]
    expectation: str
    # The steps of checking a value, beyond the one of every rule.
    cost: Callable[[Any, Any], int] = lambda _value, _operand: 0
    # What a fault adds to the expectation.
    hint: Callable[[Any, Any], str] = lambda _value, _operand: ""


def _comparing(value: Any, _operand: object) -> int:  # noqa: ANN401 - any JSON
    return parts_of(value)


def _among(read: Callable[[Any], HashedOptions], expectation: str) -> Assertion:
    return Assertion(
        read,
        None,
        lambda value, options: value in options,
        expectation,
        _comparing,
        lambda value, options: options.hint(value),
    )


def _size(judges: str, holds: Callable[[int, int], bool], expectation: str) -> Assertion:
    return Assertion(natural, judges, lambda value, size: holds(len(value), size), expectation)


ASSERTIONS: Mapping[str, Assertion] = {
    "type": Assertion(
        _type_names,
        None,
        lambda value, names: any(TYPES[name](value) for name in names),
        "{}",
        hint=lambda value, _names: f", got {type_of(value)}",
    ),
    "enum": _among(_options, "one of {}"),
    "const": _among(lambda argument: HashedOptions([argument]), "{}"),
    "minimum": Assertion(_number, "number", operator.ge, "at least {}"),
    "maximum": Assertion(_number, "number", operator.le, "at most {}"),
    "exclusiveMinimum": Assertion(_number, "number", operator.gt, "more than {}"),
    "exclusiveMaximum": Assertion(_number, "number", operator.lt, "less than {}"),
    "multipleOf": Assertion(
        _positive,
        "number",
        lambda value, step: _exact(value) % _exact(step) == 0,
        "a multiple of {}",
        lambda _value, _step: DIVISION_STEPS,
    ),
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
        lambda text, pattern: pattern_steps(pattern, text),
    ),
    "uniqueItems": Assertion(
        _boolean,
        "array",
        lambda items, is_wanted: not is_wanted or len(set(map(identity, items))) == len(items),
        "items that differ from each other",
        _comparing,
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
