"""Values that pure rules name, for columns: the rules stay their one source."""

from collections.abc import Iterable


def values_of(known: Iterable[str]) -> list[str]:
    """Return the values as plain text, as migrations keep them."""
    return [str(one) for one in known]


def choices_of(known: Iterable[str]) -> list[tuple[str, str]]:
    """Return each value with the label that Django makes of such a name."""
    return [(value, _label(value)) for value in values_of(known)]


def _label(value: str) -> str:
    return value.replace("_", " ").replace("-", " ").title()
