"""Tables in the order of the column that a reader chooses: `?sort=tokens`, `?sort=-tokens`.

A column of figures begins with the largest, one of names with the first; a second click turns it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.http import QueryDict

Row = TypeVar("Row")
NAMES = frozenset({"model", "state"})
# Where a reader is in the list, which another order leaves.
PLACE = ("page", "cursor")


@dataclass(frozen=True, slots=True)
class ColumnSort:
    """The column that a table is sorted by; empty for the order that it has by itself."""

    column: str = ""
    is_turned: bool = False

    @classmethod
    def read(cls, params: Mapping[str, str]) -> "ColumnSort":
        """Read the parameter of an address; whether there is such a column is the table's."""
        sort = params.get("sort", "")
        return cls(sort.removeprefix("-"), sort.startswith("-"))

    @property
    def text(self) -> str:
        return f"-{self.column}" if self.is_turned else self.column

    @property
    def is_rising(self) -> bool:
        """Whether the smallest, or the first by name, comes first."""
        return (self.column in NAMES) is not self.is_turned

    def heads(self, labels: Mapping[str, str], params: QueryDict) -> list[dict[str, str]]:
        """Return the head of each column: a link that sorts by it, and how it sorts now."""
        query, heads = params.copy(), []
        for other in PLACE:
            query.pop(other, None)
        for name, label in labels.items():
            is_chosen = name == self.column
            query["sort"] = f"-{name}" if is_chosen and not self.is_turned else name
            direction = ("ascending" if self.is_rising else "descending") if is_chosen else ""
            link = f"?{query.urlencode()}"
            heads.append({"label": label, "query": link, "direction": direction})
        return heads

    def order(self, rows: Iterable[Row], figure: Callable[[Row], Any]) -> list[Row]:
        """Return rows by a figure; those without one are last, equals stay as they are."""
        known = [(figure(row), row) for row in rows]
        pairs = [pair for pair in known if pair[0] is not None]
        pairs.sort(key=lambda pair: pair[0], reverse=not self.is_rising)
        return [row for _, row in pairs] + [row for value, row in known if value is None]
