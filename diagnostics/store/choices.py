"""Values of pure rules as column choices, so that they are defined once."""

from collections.abc import Iterable


def choices_of(known: Iterable[str]) -> list[tuple[str, str]]:
    """Return each value with the label that Django makes of such a name."""
    return [(str(name), name.replace("_", " ").replace("-", " ").title()) for name in known]
