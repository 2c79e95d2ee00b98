"""Masking secrets: bound, normalise, known values, rules, truncate - in this order."""

from diagnostics.core.redaction.pipeline import FAILED, Redact, Redacted, Redactor

__all__ = ["FAILED", "Redact", "Redacted", "Redactor"]
