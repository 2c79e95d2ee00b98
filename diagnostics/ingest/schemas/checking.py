"""Checking a value against a compiled schema: faults with places, bounded work."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from failsoft.json_values import pointer_of

MAX_STEPS = 150_000
MAX_LEVELS = 150
# Between two looks at the clock.
LOOK_STEPS = 2_000

Rule = Callable[["Check", Any, "ValuePlace"], Iterable["SchemaFault"]]
IsLate = Callable[[], bool]


def never_late() -> bool:
    """Return False: only steps bound the work."""
    return False


class OverBudgetError(Exception):
    """the value takes more work than is given to one answer"""


class ValuePlace(NamedTuple):
    """A place in a value: the last segment of its pointer, and the enclosing place."""

    around: "ValuePlace | None"
    segment: str | int

    @property
    def segments(self) -> list[str | int]:
        """Return the way from the root."""
        parts: list[str | int] = []
        here: ValuePlace | None = self
        while here is not None and here.around is not None:
            parts.append(here.segment)
            here = here.around
        return parts[::-1]

    @property
    def pointer(self) -> str:
        return pointer_of(self.segments)


ROOT = ValuePlace(None, "")


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """A violation: the place, the keyword and what was expected."""

    place: ValuePlace
    code: str
    message: str


@dataclass(slots=True)
class SchemaNode:
    """One schema and its rules; if one of `first` fails, the others are skipped.

    `arguments` are those of its applicators, with nodes in place of schemas. Where something of
    the whole schema is passed over (`is_loose`), what fits too much must not refuse a value.
    """

    first: list[Rule] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    arguments: dict[str, Any] = field(default_factory=dict)
    # Compiled `patternProperties`.
    patterns: list[tuple[Any, "SchemaNode"]] = field(default_factory=list)
    is_loose: bool = False
    is_nullable: bool = False


class Check:
    """One pass over one value; raises OverBudgetError when it takes too long.

    A step is about a microsecond. Whatever costs more than a few of them is spent before it
    is done, so that nothing between two looks at the clock takes long.
    """

    def __init__(self, max_steps: int, is_late: IsLate = never_late) -> None:
        self.remaining = max_steps
        self.level = 0
        self._is_late = is_late
        self._next_look = max_steps

    def spend(self, steps: int) -> None:
        """Deduct from the budget."""
        self.remaining -= steps
        if self.remaining < self._next_look:
            if self.remaining < 0 or self._is_late():
                raise OverBudgetError(OverBudgetError.__doc__)
            self._next_look = max(self.remaining - LOOK_STEPS, 0)

    def faults(self, node: SchemaNode, value: object, place: ValuePlace) -> list[SchemaFault]:
        """List what does not fit, in the order of the schema's keywords."""
        if value is None and node.is_nullable:
            return []
        self.spend(1 + len(node.rules))
        self.level += 1
        if self.level > MAX_LEVELS:
            raise OverBudgetError(OverBudgetError.__doc__)
        faults: list[SchemaFault] = []
        for rule in node.first:
            faults += rule(self, value, place)
        if not faults:
            for rule in node.rules:
                faults += rule(self, value, place)
        self.level -= 1
        # The form around it copies and weighs them.
        self.spend(len(faults))
        return faults

    def holds(self, node: SchemaNode, value: object) -> bool:
        return not self.faults(node, value, ROOT)


def check(
    nodes: Mapping[str, SchemaNode],
    value: object,
    max_steps: int = MAX_STEPS,
    is_late: IsLate = never_late,
) -> list[SchemaFault]:
    """List every fault of a value against the schema's nodes (by pointer, root at "").

    Raises OverBudgetError after `max_steps`, or when it is late.
    """
    return Check(max_steps, is_late).faults(nodes[""], value, ROOT)
