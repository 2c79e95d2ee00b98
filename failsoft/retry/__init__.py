"""Bounded attempts with feedback, from prompt to checked answer.

>>> from failsoft.retry import RetryPolicy, Valid, attempts
>>> course = attempts(RetryPolicy())
>>> next(course).number
1
>>> try:
...     course.send(Valid({"steps": []}))
... except StopIteration as ending:
...     print(ending.value)
Succeeded(value={'steps': []}, attempts=1)
"""

from failsoft.retry.answers import parse_answer
from failsoft.retry.engine import (
    CallFailed,
    Exhausted,
    Feedback,
    Halted,
    Interrupted,
    Invalid,
    PlannedAttempt,
    Succeeded,
    Unanswered,
    Valid,
    attempts,
)
from failsoft.retry.policy import RetryConfig, RetryPolicy

__all__ = [
    "CallFailed",
    "Exhausted",
    "Feedback",
    "Halted",
    "Interrupted",
    "Invalid",
    "PlannedAttempt",
    "RetryConfig",
    "RetryPolicy",
    "Succeeded",
    "Unanswered",
    "Valid",
    "attempts",
    "parse_answer",
]
