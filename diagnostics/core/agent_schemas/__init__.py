"""JSON Schemas of an agent's own: read once with care, checked with bounded work."""

from diagnostics.core.agent_schemas.checking import (
    MAX_STEPS,
    Fault,
    OverBudgetError,
    check,
)
from diagnostics.core.agent_schemas.judging import Verdict, judge
from diagnostics.core.agent_schemas.reading import Schema, SchemaFaultError, read_schema

__all__ = [
    "MAX_STEPS",
    "Fault",
    "OverBudgetError",
    "Schema",
    "SchemaFaultError",
    "Verdict",
    "check",
    "judge",
    "read_schema",
]
