r"""Completion decisions: one resolver for every runner, pure and deterministic.

>>> from failsoft.completion import resolve_completion_decision
>>> resolve_completion_decision(None, "All done.\nCOMPLETE", None).decision
<CheckDecision.COMPLETE: 'complete'>
"""

from failsoft.completion.resolver import resolve_completion_decision
from failsoft.completion.verdicts import CheckDecision, CheckVerdict, DecisionSource, UndecidedCause

__all__ = [
    "CheckDecision",
    "CheckVerdict",
    "DecisionSource",
    "UndecidedCause",
    "resolve_completion_decision",
]
