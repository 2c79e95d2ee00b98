"""Recovering JSON from a model: one reading, or a refusal that says where; never in silence."""

from diagnostics.core.recovery.answers import Recovered, Refused, recover, trace

__all__ = ["Recovered", "Refused", "recover", "trace"]
