"""Rules as values, and those that every project begins with."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

from diagnostics.core.alerting.parameters import Parameters, read_parameters
from diagnostics.core.alerting.signals import Signal
from diagnostics.core.alerting.states import NoData, Patience
from diagnostics.core.filter_fields import SERIES_FIELDS
from diagnostics.core.query_language import Query, Term, write_query
from diagnostics.core.selection import (
    Selection,
    SelectionError,
    read_selection,
    require_selection,
)

LONGEST_FILTER = 1_000
WATCHED_BY = "a rule watches by environment, node, provider and model only"


class FilterError(ValueError):
    """a filter names something that rules cannot watch by; `wrong` says what"""

    def __init__(self, wrong: Iterable[str]) -> None:
        named = ", ".join(dict.fromkeys(wrong))
        super().__init__(f"{WATCHED_BY}; refused: {named}")


@dataclass(frozen=True, slots=True)
class Rule:
    """What the evaluation needs to know of a rule."""

    id: int
    name: str
    version: int
    terms: tuple[Term, ...]
    group_by: tuple[str, ...]
    signal: Signal
    detector: str
    asked: Parameters
    severity: str
    patience: Patience = field(default_factory=Patience)

    @property
    def is_latency(self) -> bool:
        """Whether slow calls are the bad ones."""
        return self.signal is Signal.LATENCY_P95


STANDARD: Mapping[str, Mapping[str, Any]] = {
    "change": {
        "name": "Worse than usual",
        "group_by": list(SERIES_FIELDS),
        "signal": Signal.CALL_FAILURE_RATIO,
        "detector": "change",
        "no_data": NoData.CLEAR,
        "severity": "warning",
    },
    "degraded_count": {
        "name": "Repeated degradation",
        "group_by": ["provider", "model"],
        "signal": Signal.DEGRADED_COUNT,
        "detector": "count",
        "parameters": {"count": 3, "seconds": 3600},
        "no_data": NoData.CLEAR,
        "severity": "warning",
    },
}
"""Out of the box (S0-58): a change of any series, and three degraded runs in an hour."""


def make_rule(row: Mapping[str, Any]) -> Rule:
    """Make a rule of a row's values."""
    return Rule(
        row["id"],
        row["name"],
        row["version"],
        terms_of(row["filter"]),
        tuple(row["group_by"]),
        Signal(row["signal"]),
        row["detector"],
        read_parameters(row["signal"], row["parameters"]),
        row["severity"],
        Patience(
            row["for_seconds"],
            row["clear_seconds"],
            NoData(row["no_data"]),
            row["no_data_seconds"],
            row["is_latching"],
        ),
    )


@lru_cache(maxsize=4_096)
def terms_of(text: str) -> tuple[Term, ...]:
    """Read the conditions of a filter; what series do not have is left out."""
    return read_selection(dict(parse_qsl(text))).series_terms


def check_filter(text: str) -> str:
    """Give a filter as it is kept; FilterError names what rules cannot watch by.

    It may be written as in the address of a page (provider=acme&model=m-1) or as in its
    box (model:m-1 -env:dev). What is not understood is refused, not left out: without it,
    all calls would be meant.
    """
    if len(text) > LONGEST_FILTER:
        raise FilterError([f"more than {LONGEST_FILTER} characters"])
    try:
        selection = require_selection(_read_address(text) if "=" in text else {"q": text})
    except SelectionError as error:
        told = error.faults.items()
        raise FilterError(why if name == "q" else name for name, why in told) from error
    kept, dropped = watched(selection)
    if dropped:
        raise FilterError(dropped)
    return kept


def _read_address(text: str) -> dict[str, str]:
    if unread := [one for one in text.split("&") if one and "=" not in one]:
        raise FilterError(unread)
    return dict(parse_qsl(text))


def watched(selection: Selection) -> tuple[str, Sequence[str]]:
    """Give what a rule can watch of a selection as a filter, and what it cannot."""
    filters = {
        name: "-" if value is None else value
        for name, value in selection.filters.items()
        if name in SERIES_FIELDS
    }
    terms = tuple(term for term in selection.text.terms if term.field in SERIES_FIELDS)
    if terms:
        filters["q"] = write_query(Query(terms))
    unable = [name for name in selection.filters if name not in SERIES_FIELDS]
    unable += [t.field for t in selection.text.terms if t.field not in SERIES_FIELDS]
    unable += [word.text for word in selection.text.words]
    return urlencode(filters), unable


def filter_of(values: Mapping[str, str | None]) -> str:
    """Write the values of a slice as a filter."""
    return urlencode({name: "-" if value is None else value for name, value in values.items()})
