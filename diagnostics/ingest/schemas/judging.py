"""Checking one answer against a node's schema: recovered, then checked, faults placed.

Nothing is coerced: the leniencies of our own planners depend on our own schemas.
"""

from dataclasses import dataclass

from diagnostics.ingest.schemas.checking import MAX_STEPS, IsLate, SchemaFault, check, never_late
from diagnostics.ingest.schemas.reading import CompiledSchema
from failsoft.events import MAX_ERRORS, ParseErrorType, Repair, ValidationErrorItem
from failsoft.parsing import Recovered, RefusedAnswer, TextPlaces, recover


@dataclass(frozen=True, slots=True)
class SchemaVerdict:
    """The errors of an answer (type None: valid) and the repairs needed to read it."""

    error_type: ParseErrorType | None
    errors: tuple[ValidationErrorItem, ...] = ()
    repairs: tuple[Repair, ...] = ()


def judge(
    text: str,
    finish_reason: str | None,
    schema: CompiledSchema | None,
    max_steps: int = MAX_STEPS,
    is_late: IsLate = never_late,
) -> SchemaVerdict:
    """Parse an answer and check it; without a schema any object or array is valid.

    Raises OverBudgetError when the check takes more than `max_steps`, or when it is late.
    """
    recovered = recover(text, finish_reason)
    if isinstance(recovered, RefusedAnswer):
        return SchemaVerdict(recovered.error_type, (recovered.reason,))
    errors = faults_of(recovered, schema, max_steps, is_late) if schema is not None else ()
    error_type = ParseErrorType.SCHEMA_INVALID if errors else None
    return SchemaVerdict(error_type, errors, recovered.repairs)


def faults_of(
    recovered: Recovered,
    schema: CompiledSchema,
    max_steps: int = MAX_STEPS,
    is_late: IsLate = never_late,
) -> tuple[ValidationErrorItem, ...]:
    """Return the faults of a recovered value, with places. Raises OverBudgetError."""
    faults = check(schema.nodes, recovered.value, max_steps, is_late)
    return _placed(recovered, faults) if faults else ()


def _placed(recovered: Recovered, faults: list[SchemaFault]) -> tuple[ValidationErrorItem, ...]:
    places = TextPlaces(recovered.text)
    return tuple(
        places.error(fault.place.pointer, fault.code, fault.message)
        for fault in faults[:MAX_ERRORS]
    )
