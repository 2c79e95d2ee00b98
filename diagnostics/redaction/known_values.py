"""What filters can be set to: the values that a project's series and versions have."""

from collections.abc import Mapping, Sequence

from diagnostics.storage.executing import execute

MOST_VALUES = 24
KnownValues = Mapping[str, Sequence[str | None]]


def known_values(project_id: int, most: int = MOST_VALUES) -> KnownValues:
    """Give the newest values of each field by name, null last; one query."""
    found: dict[str, list[str | None]] = {}
    for field, value in execute("known_values", {"project_id": project_id, "most": most}):
        found.setdefault(field, []).append(value)
    return {name: sorted(values, key=_place) for name, values in found.items()}


def _place(value: str | None) -> tuple[bool, str]:
    return value is None, value or ""
