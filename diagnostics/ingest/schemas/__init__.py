"""Agents' own JSON Schemas: validated once, checked with bounded work."""

from diagnostics.ingest.schemas.cache import SchemaCache
from diagnostics.ingest.schemas.checking import MAX_STEPS, OverBudgetError, SchemaFault, check
from diagnostics.ingest.schemas.judging import SchemaVerdict, judge
from diagnostics.ingest.schemas.reading import CompiledSchema, SchemaFaultError, read_schema

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
