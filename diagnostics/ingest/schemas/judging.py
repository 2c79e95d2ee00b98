"""One answer against a node's schema: recovered, then checked as it is, every fault placed.

Nothing is coerced: the leniencies for our own planners know our own schemas.
"""

from dataclasses import dataclass

from diagnostics.ingest.schemas.checking import MAX_STEPS, SchemaFault, check
from diagnostics.ingest.schemas.reading import CompiledSchema
from failsoft.events import MAX_ERRORS, ParseErrorType, Repair, ValidationErrorItem
from failsoft.parsing import Recovered, RefusedAnswer, TextPlaces, recover


@dataclass(frozen=True, slots=True)
class SchemaVerdict:
    """What is wrong with an answer (None: nothing) and what it took to read it."""

    error_type: ParseErrorType | None
    errors: tuple[ValidationErrorItem, ...] = ()
    repairs: tuple[Repair, ...] = ()


def judge(
    text: str, finish_reason: str | None, schema: CompiledSchema | None, max_steps: int = MAX_STEPS
) -> SchemaVerdict:
    """Parse an answer and check it; without a schema any object or array is right.

    Raises OverBudgetError when the check takes more than `max_steps`.
    """
    found = recover(text, finish_reason)
    if isinstance(found, RefusedAnswer):
        return SchemaVerdict(found.error_type, (found.reason,))
    errors = faults_of(found, schema, max_steps) if schema is not None else ()
    bad = ParseErrorType.SCHEMA_INVALID if errors else None
    return SchemaVerdict(bad, errors, found.repairs)


def faults_of(
    found: Recovered, schema: CompiledSchema, max_steps: int = MAX_STEPS
) -> tuple[ValidationErrorItem, ...]:
    """Check a recovered value as it is; every fault placed. Raises OverBudgetError."""
    faults = check(schema.nodes, found.value, max_steps)
    return _placed(found, faults) if faults else ()


def _placed(found: Recovered, faults: list[SchemaFault]) -> tuple[ValidationErrorItem, ...]:
    places = TextPlaces(found.text)
    return tuple(
        places.error(fault.place.pointer, fault.code, fault.message)
        for fault in faults[:MAX_ERRORS]
    )
