"""How bad it is, in order."""

ORDER = ("info", "warning", "critical")


def rank(severity: str) -> int:
    """Give the place in the order; what is not known ranks as a warning."""
    return ORDER.index(severity) if severity in ORDER else ORDER.index("warning")
