"""Agents' own JSON Schemas: validated once, checked with bounded work."""

import json
from dataclasses import dataclass
from threading import Lock

from diagnostics.ingest.schemas.assertions import MAX_STEPS
from diagnostics.ingest.schemas.checking import (
    IsLate,
    OverBudgetError,
    SchemaFault,
    check,
    never_late,
)
from diagnostics.ingest.schemas.reading import CompiledSchema, SchemaFaultError, read_schema
from failsoft.events import MAX_ERRORS, ParseErrorType, Repair, ValidationErrorItem
from failsoft.parsing import Recovered, RefusedAnswer, TextPlaces, recover

__all__ = [
    "MAX_STEPS",
    "CompiledSchema",
    "OverBudgetError",
    "SchemaCache",
    "SchemaFault",
    "SchemaFaultError",
    "SchemaVerdict",
    "check",
    "judge",
    "read_schema",
]
# Senders choose how many schemas there are, so their number alone is no bound.
MAX_CACHED_BYTES = 64 << 20


class SchemaCache:
    """Schemas by their text; the ones used longest ago make room for others."""

    def __init__(self) -> None:
        self.size = 0
        self._lock = Lock()
        self._schemas: dict[tuple[str, bool], CompiledSchema | None] = {}

    def read(
        self, text: str, *, is_ours: bool, is_late: IsLate = never_late
    ) -> CompiledSchema | None:
        """Return the schema of a JSON text as `read_schema` has it; None if it is refused.

        Raises OverBudgetError if it has to be compiled and it is late.
        """
        key = text, is_ours
        with self._lock:
            if key in self._schemas:
                schema = self._schemas[key] = self._schemas.pop(key)
                return schema
        if is_late():
            raise OverBudgetError(OverBudgetError.__doc__)
        try:
            schema = read_schema(json.loads(text), is_ours)
        except SchemaFaultError:
            schema = None
        with self._lock:
            if key not in self._schemas:
                self._schemas[key] = schema
                self.size += _size_of(text, schema)
            while self.size > MAX_CACHED_BYTES:
                oldest = next(iter(self._schemas))
                self.size -= _size_of(oldest[0], self._schemas.pop(oldest))
        return schema


def _size_of(text: str, schema: CompiledSchema | None) -> int:
    return len(text) + (schema.size if schema is not None else 0)


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
    is_late: IsLate = never_late,
) -> SchemaVerdict:
    """Parse an answer and check it; without a schema any object or array is valid.

    Raises OverBudgetError when the check takes too many steps, or when it is late.
    """
    recovered = recover(text, finish_reason)
    if isinstance(recovered, RefusedAnswer):
        return SchemaVerdict(recovered.error_type, (recovered.reason,))
    errors = faults_of(recovered, schema, is_late) if schema is not None else ()
    error_type = ParseErrorType.SCHEMA_INVALID if errors else None
    return SchemaVerdict(error_type, errors, recovered.repairs)


def faults_of(
    recovered: Recovered, schema: CompiledSchema, is_late: IsLate = never_late
) -> tuple[ValidationErrorItem, ...]:
    """Return the faults of a recovered value, with places. Raises OverBudgetError."""
    faults = check(schema.nodes, recovered.value, is_late)
    if not faults:
        return ()
    places = TextPlaces(recovered.text)
    return tuple(
        places.error(fault.place.pointer, fault.code, fault.message)
        for fault in faults[:MAX_ERRORS]
    )
