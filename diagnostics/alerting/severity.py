"""How urgent a rule and its incidents are."""

from enum import StrEnum


class Severity(StrEnum):
    """How urgent it is, the least first."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


ORDER = tuple(Severity)


def rank(severity: str) -> int:
    """Return the place in the order; what is not known ranks as a warning."""
    return ORDER.index(Severity(severity) if severity in ORDER else Severity.WARNING)
