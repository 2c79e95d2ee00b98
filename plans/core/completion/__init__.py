"""Completion decisions (s3): one resolver for every runner, pure and deterministic."""

from plans.core.completion.resolver import resolve_completion_decision
from plans.core.completion.verdicts import Cause, Decision, Source, Verdict

__all__ = ["Cause", "Decision", "Source", "Verdict", "resolve_completion_decision"]
