"""Redaction of secrets: bound, normalise, known values, rules, truncate - in this order.

>>> from failsoft.redaction import Redactor
>>> redactor = Redactor(known={"correct horse battery": "phrase"})
>>> redactor.redact("it is correct horse battery").text
'it is [REDACTED:phrase]'
"""

from failsoft.redaction.pipeline import FAILED, Redact, Redacted, Redactor
from failsoft.redaction.rules import load_rule_set

__all__ = ["FAILED", "Redact", "Redacted", "Redactor", "load_rule_set"]
