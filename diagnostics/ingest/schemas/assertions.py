"""Keywords that look at one value alone: each says what it expects when that does not hold.

A factory takes the keyword's argument, raises BadArgumentError when it is none, and gives
a function from a value to the expectation it breaks, or None. Expectations are made of
the schema, never of the value.
"""

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import re2


def same(one: Any, other: Any) -> bool:  # noqa: ANN401 - any JSON
    """Compare two values as JSON Schema does."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            same(value, other[key]) for key, value in one.items()
        )
    return bool(one == other)


def are_unique(items: list[Any]) -> bool:
    """Whether no two items are the same, in linear time."""
    return len({_canonical(item) for item in items}) == len(items)


def _canonical(value: Any) -> str:  # noqa: ANN401 - any JSON
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, float) and value.is_integer():
        return hex(int(value))
    if isinstance(value, int) and not isinstance(value, bool):
        # As text: huge integers have no decimal form that is cheap to make.
        return hex(value)
    if isinstance(value, str):
        return f"={value}"
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


Assertion = Callable[[Any], str | None]
Factory = Callable[[Any], Assertion]
MAX_PATTERN = 1000
MAX_SHOWN = 200


class BadArgumentError(ValueError):
    """the value of a keyword is not what it must be; the text says what it must be"""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    whole = isinstance(value, float) and value.is_integer()
    return whole or (isinstance(value, int) and not isinstance(value, bool))


TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


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
            "a pattern that RE2 reads: no look-around, no back-references"
        ) from error


def type_of(value: object) -> str:
    """Name the JSON type of a value."""
    return next(name for name, holds in TYPES.items() if holds(value))


def _type(argument: object) -> Assertion:
    names = [argument] if isinstance(argument, str) else argument
    if not isinstance(names, list) or not names:
        raise BadArgumentError("a type or a list of types")
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            raise BadArgumentError(f"one of {', '.join(TYPES)}")
    kinds = [TYPES[name] for name in names]
    told = " or ".join(names)

    def assertion(value: object) -> str | None:
        if any(holds(value) for holds in kinds):
            return None
        return f"expected {told}, got {type_of(value)}"

    return assertion


def _enum(argument: object) -> Assertion:
    if not isinstance(argument, list) or not argument:
        raise BadArgumentError("a list with at least one value")
    options = argument
    expectation = f"expected one of {_show(options)}"
    return lambda value: None if any(same(option, value) for option in options) else expectation


def _const(argument: object) -> Assertion:
    expectation = f"expected {_show(argument)}"
    return lambda value: None if same(argument, value) else expectation


def _bound(holds: Callable[[Any, Any], bool], told: str, minimum: float | None = None) -> Factory:
    """Make a factory of a keyword that compares numbers."""

    def factory(argument: Any) -> Assertion:  # noqa: ANN401 - any JSON
        if not _is_number(argument) or (minimum is not None and argument <= minimum):
            raise BadArgumentError("a number" if minimum is None else "a number > 0")
        expectation = f"expected {told} {argument}"
        return lambda value: (
            expectation if _is_number(value) and not holds(value, argument) else None
        )

    return factory


def _size(kind: type, holds: Callable[[int, int], bool], told: str) -> Factory:
    """Make a factory of a keyword that counts characters, items or properties."""

    def factory(argument: Any) -> Assertion:  # noqa: ANN401 - any JSON
        limit = natural(argument)
        expectation = f"expected {told.format(limit)}"

        def assertion(value: Any) -> str | None:  # noqa: ANN401 - any JSON
            is_meant = isinstance(value, kind)
            return expectation if is_meant and not holds(len(value), limit) else None

        return assertion

    return factory


def natural(argument: object) -> int:
    """Read a count: an integer from 0."""
    if not _is_integer(argument) or argument < 0:  # type: ignore[operator] # a number
        raise BadArgumentError("an integer from 0")
    return int(argument)  # type: ignore[call-overload, no-any-return] # a number


def _multiple(value: Any, step: Any) -> bool:  # noqa: ANN401 - numbers
    return _exact(value) % _exact(step) == 0


def _exact(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _pattern(argument: object) -> Assertion:
    expression = compile_pattern(argument)
    expectation = f"expected text that matches {_show(argument)}"
    return lambda value: (
        expectation if isinstance(value, str) and not expression.search(value) else None
    )


def _unique(argument: object) -> Assertion:
    if not isinstance(argument, bool):
        raise BadArgumentError("true or false")
    if not argument:
        return lambda _: None
    return lambda value: (
        "expected items that differ from each other"
        if isinstance(value, list) and not are_unique(value)
        else None
    )


def _show(value: object) -> str:
    """Show a part of the schema in a message, cut."""
    options = value if isinstance(value, list) else [value]
    text = ", ".join(json.dumps(option, ensure_ascii=False) for option in options)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ..."


ASSERTIONS: Mapping[str, Factory] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minimum": _bound(lambda value, limit: value >= limit, "at least"),
    "maximum": _bound(lambda value, limit: value <= limit, "at most"),
    "exclusiveMinimum": _bound(lambda value, limit: value > limit, "more than"),
    "exclusiveMaximum": _bound(lambda value, limit: value < limit, "less than"),
    "multipleOf": _bound(_multiple, "a multiple of", minimum=0),
    "minLength": _size(str, lambda size, limit: size >= limit, "at least {} characters"),
    "maxLength": _size(str, lambda size, limit: size <= limit, "at most {} characters"),
    "minItems": _size(list, lambda size, limit: size >= limit, "at least {} items"),
    "maxItems": _size(list, lambda size, limit: size <= limit, "at most {} items"),
    "minProperties": _size(dict, lambda size, limit: size >= limit, "at least {} properties"),
    "maxProperties": _size(dict, lambda size, limit: size <= limit, "at most {} properties"),
    "pattern": _pattern,
    "uniqueItems": _unique,
}
