"""Violations of the contract: structured, bounded, safe to display."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from failsoft.json_values import clean_text, pointer_of
from failsoft.plans.contract import MAX_VIOLATIONS

_SHOWN_CHARACTERS = 80
_SHOWN_STEPS_OF_CYCLE = 5
Place = tuple[str | int, ...]
"""The keys and indices that lead to a value."""
Link = tuple["Link | None", str | int]
"""The same from the end, where few of many values need their place: what is above, and a part."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: a JSON pointer, a stable code, and what was expected."""

    path: str
    code: str
    message: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Violations:
    """A list of violations that stops growing at its limit."""

    def __init__(self, limit: int = MAX_VIOLATIONS) -> None:
        self._violations: list[Violation] = []
        self._count = 0
        self._limit = limit
        self.full = False
        """Whether further violations are dropped, so that callers may stop."""

    def add(self, path: str, code: str, message: str) -> None:
        """Add a violation unless the list is full."""
        self._count += 1
        if not self.full:
            self._violations.append(Violation(path, code, message))
            self.full = len(self._violations) >= self._limit

    def add_type(self, path: str, code: str, expected: str, value: object) -> None:
        self.add(path, code, f"expected {expected}, got {kind_of(value)}")

    def __iter__(self) -> Iterator[Violation]:
        return iter(self._violations)

    def __len__(self) -> int:
        """Return the number of added violations, dropped ones included."""
        return self._count


def quote(text: str) -> str:
    shown = clean_text(text[:_SHOWN_CHARACTERS])
    dots = "..." if len(text) > _SHOWN_CHARACTERS else ""
    return json.dumps(shown + dots, ensure_ascii=False)


def kind_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list):
        return "an array"
    return "an object" if isinstance(value, dict) else f"a {type(value).__name__}"


def parts_of(link: Link | None) -> Place:
    """Return the place that a link ends at."""
    parts: list[str | int] = []
    while link is not None:
        link, part = link
        parts.append(part)
    return tuple(reversed(parts))


def point(*parts: str | int) -> str:
    return pointer_of(clean_text(str(part)[:_SHOWN_CHARACTERS]) for part in parts)


def name_step(step_id: object) -> str:
    return quote(step_id) if isinstance(step_id, str) else f"({kind_of(step_id)})"


def describe_cycle(names: Sequence[Any], cycle: Sequence[int]) -> str:
    """Return a cycle of indices as arrows from each step to the one it depends on."""
    shown = [name_step(names[index]) for index in cycle[:_SHOWN_STEPS_OF_CYCLE]]
    dots = ["..."] if len(cycle) > _SHOWN_STEPS_OF_CYCLE else []
    return " -> ".join([*shown, *dots, shown[0]])
