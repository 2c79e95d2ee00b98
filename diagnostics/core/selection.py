"""What a page is narrowed to: a range of time and up to four filters, in the query."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

RANGES: dict[str, timedelta] = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
DEFAULT_RANGE = "24h"
FIELDS = ("environment", "node", "provider", "model")
UNKNOWN = "-"
"""Stands for null in the query: null is a value (an agent did not say)."""
LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True)
class Selection:
    """A range and the filters that are set; a filter of None asks for null."""

    range: str
    filters: Mapping[str, str | None]

    @property
    def span(self) -> timedelta:
        """How far the range reaches back."""
        return RANGES[self.range]

    @property
    def range_words(self) -> str:
        """The range as it is read: `24 h`."""
        return f"{self.range[:-1]} {self.range[-1]}"

    def since(self, until: datetime) -> datetime:
        """Where the range begins when it ends at `until`."""
        return until - self.span

    def query(self, **changes: str | None) -> str:
        """Write the query string of this selection with changes; None takes one out.

        What is the default is left out, so that the plain page has the plain address.
        """
        shown = {key: _written(value) for key, value in self.filters.items()}
        asked = {"range": self.range, **shown, **changes}
        if asked["range"] == DEFAULT_RANGE:
            del asked["range"]
        return urlencode([(key, value) for key, value in asked.items() if value])

    def narrowed_to(self, **values: str | None) -> str:
        """Write the query string with these filters set to values, null included."""
        return self.query(**{key: _written(value) for key, value in values.items()})

    def keeps(self, values: Mapping[str, str | None]) -> bool:
        """Ask whether something with these values lies inside the selection."""
        return all(values[key] == value for key, value in self.filters.items())


def read_selection(asked: Mapping[str, str]) -> Selection:
    """Read a query leniently: what is not understood is left out."""
    chosen = asked.get("range", DEFAULT_RANGE)
    given = ((field, _cleaned(asked.get(field, ""))) for field in FIELDS)
    return Selection(
        range=chosen if chosen in RANGES else DEFAULT_RANGE,
        filters={
            field: None if value == UNKNOWN else value
            for field, value in given
            if value
        },
    )


def _cleaned(value: str) -> str:
    return value.replace("\0", "").strip()[:LONGEST_VALUE]


def _written(value: str | None) -> str:
    return UNKNOWN if value is None else value
