"""One answer against a node's schema: recovered, then checked as it is, every fault placed.

Nothing is coerced: the leniencies for our own planners know our own schemas (X-20).
"""

from dataclasses import dataclass

from diagnostics.core.agent_schemas.checking import MAX_STEPS, Fault, check
from diagnostics.core.agent_schemas.reading import Schema
from diagnostics.core.events import (
    MAX_ERRORS,
    ParseErrorType,
    Repair,
    ValidationErrorItem,
)
from diagnostics.core.recovery import Recovered, Refused, recover, trace
from diagnostics.core.recovery.places import Lines

MAX_PATH = 1000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with an answer (None: nothing) and what it took to read it."""

    error_type: ParseErrorType | None
    errors: tuple[ValidationErrorItem, ...] = ()
    repairs: tuple[Repair, ...] = ()


def judge(
    text: str,
    finish_reason: str | None,
    schema: Schema | None,
    max_steps: int = MAX_STEPS,
) -> Verdict:
    """Parse an answer and check it; without a schema any object or array is right.

    Raises OverBudgetError when the check takes more than `max_steps`.
    """
    found = recover(text, finish_reason)
    if isinstance(found, Refused):
        return Verdict(found.error_type, (_refusal(found),))
    errors = faults_of(found, schema, max_steps) if schema is not None else ()
    bad = ParseErrorType.SCHEMA_INVALID if errors else None
    return Verdict(bad, errors, found.repairs)


def faults_of(
    found: Recovered, schema: Schema, max_steps: int = MAX_STEPS
) -> tuple[ValidationErrorItem, ...]:
    """Check a recovered value as it is; every fault placed. Raises OverBudgetError."""
    faults = check(schema.nodes, found.value, max_steps)
    return _placed(found, faults) if faults else ()


def _refusal(refused: Refused) -> ValidationErrorItem:
    # Without the excerpt: a window on unredacted text could cut a secret in half.
    return ValidationErrorItem(
        path="",
        code=refused.error_type.value,
        message=f"expected {refused.expected}",
        line=refused.line,
        column=refused.column,
    )


def _placed(found: Recovered, faults: list[Fault]) -> tuple[ValidationErrorItem, ...]:
    places, lines = trace(found.text), Lines(found.text)
    placed = []
    for fault in faults[:MAX_ERRORS]:
        pointer = fault.place.pointer
        line, column = lines.place(places.pointed(pointer))
        item = ValidationErrorItem(
            path=pointer[:MAX_PATH],
            code=fault.code,
            message=fault.message,
            line=line,
            column=column,
        )
        placed.append(item)
    return tuple(placed)
