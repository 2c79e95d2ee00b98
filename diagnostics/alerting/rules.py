"""Rules as values: their parameters, checked, and the built-in ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import Any
from urllib.parse import parse_qsl, urlencode

from diagnostics.alerting.signals import RATIOS, Signal
from diagnostics.alerting.states import NoData, Patience
from diagnostics.analysis.detectors.thresholds import (
    COUNT_SECONDS,
    DEFAULT_BUDGET,
    DEFAULT_FAILED,
    HIGHEST_SHARE,
    PACES,
    capped_factor,
)
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.selection.query_language import Query, Term, write_query
from diagnostics.selection.selection import (
    FaultsError,
    Selection,
    SelectionError,
    read_selection,
    require_selection,
)

LONGEST_WINDOW = 6 * 3600
SHORTEST_WINDOW = 60
MOST = 10**12
LONGEST_SILENCE = 30 * 86_400
MONEY_UNITS = 1_000_000
"""Money is counted in millionths, so that counts stay whole numbers."""
DETECTORS: Mapping[Signal, tuple[str, ...]] = {
    signal: ("change", "threshold", "burn")
    if signal in RATIOS
    else {Signal.LATENCY_P95: ("threshold",), Signal.SOURCE_SILENT: ("absent",)}.get(
        signal, ("count",)
    )
    for signal in Signal
}
"""The detectors that can judge each signal; the first is the usual one."""


class ParametersError(FaultsError):
    """the parameters of a rule are wrong; `faults` says of each one why"""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What is compared; each detector looks at its own.

    `limit` is a share (0 to 1) or milliseconds, `count` a number (money in millionths),
    `seconds` a window or a silence, `budget` a share and `factor` its fast pace.
    """

    limit: float = 0.05
    count: float = DEFAULT_FAILED
    seconds: int = COUNT_SECONDS
    budget: float = DEFAULT_BUDGET
    factor: float = PACES[0].factor


ALLOWED: Mapping[str, tuple[str, ...]] = {
    "change": (),
    "threshold": ("limit",),
    "count": ("count", "seconds"),
    "absent": ("seconds",),
    "burn": ("budget", "factor"),
}


def check_parameters(
    signal: str, detector: str, given: Mapping[str, Any]
) -> dict[str, float | int]:
    """Check and complete the parameters of a rule; gives what is to be kept.

    The factor of `burn` is capped at 0.5 / budget: a rate of 100 % could never reach more.
    Raises ParametersError.
    """
    if signal not in list(Signal):
        raise ParametersError({"signal": f"one of {', '.join(Signal)}"})
    able = DETECTORS[Signal(signal)]
    if detector not in able:
        raise ParametersError({"detector": f"{signal} goes with {', '.join(able)}"})
    if not isinstance(given, Mapping):
        raise ParametersError({"parameters": "an object"})
    allowed = ALLOWED[detector]
    faults = {
        f"parameters.{str(name)[:40]}": f"unknown; {detector} takes {_listed(allowed)}"
        for name in given
        if name not in allowed
    }
    kept = {name: given.get(name, _default(signal, name)) for name in allowed}
    faults |= {
        f"parameters.{name}": fault
        for name, value in kept.items()
        if (fault := _fault(signal, detector, name, value))
    }
    if faults:
        raise ParametersError(faults)
    if detector == "burn":
        kept["factor"] = capped_factor(kept["factor"], kept["budget"])
    return kept


def read_parameters(signal: str, kept: Mapping[str, Any]) -> Parameters:
    """Read what was kept: a lowest success becomes a highest failure."""
    if signal == Signal.REPAIR_SUCCESS_RATIO and "limit" in kept:
        kept = {**kept, "limit": 1 - kept["limit"]}
    if signal == Signal.RETRY_MONEY and "count" in kept:
        kept = {**kept, "count": kept["count"] * MONEY_UNITS}
    return Parameters(**kept)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "no parameter"


def _default(signal: str, name: str) -> float | int:
    if name == "limit" and signal == Signal.LATENCY_P95:
        return 30_000
    if name == "limit" and signal == Signal.REPAIR_SUCCESS_RATIO:
        return 0.6
    if name == "count" and signal != Signal.DEGRADED_COUNT:
        return 1
    return float(getattr(Parameters(), name)) if name != "seconds" else COUNT_SECONDS


def _fault(signal: str, detector: str, name: str, value: object) -> str | None:
    low, high = _bounds(signal, detector, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "a number"
    if not isfinite(value) or not low < value < high:
        return f"above {low:g} and below {high:g}"
    if name == "seconds" and value != int(value):
        return "whole seconds"
    return None


def _bounds(signal: str, detector: str, name: str) -> tuple[float, float]:
    if name == "limit":
        return (0, 3_600_000) if signal == Signal.LATENCY_P95 else (0, 1)
    if name == "budget":
        return 0, HIGHEST_SHARE
    if name == "seconds" and detector == "count":
        return SHORTEST_WINDOW - 1, LONGEST_WINDOW + 1
    if name == "seconds":
        return SHORTEST_WINDOW - 1, LONGEST_SILENCE + 1
    return 0, MOST


LONGEST_FILTER = 1_000
WATCHED_BY = "a rule watches by environment, node, provider and model only"


class FilterError(ValueError):
    """a filter names something that rules cannot watch by; `wrong` says what"""

    def __init__(self, wrong: Iterable[str]) -> None:
        named = ", ".join(dict.fromkeys(wrong))
        super().__init__(f"{WATCHED_BY}; refused: {named}")


@dataclass(frozen=True, slots=True)
class RuleDefinition:
    """What the evaluation needs to know of a rule."""

    id: int
    name: str
    version: int
    terms: tuple[Term, ...]
    group_by: tuple[str, ...]
    signal: Signal
    detector: str
    parameters: Parameters
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
"""Out of the box: a change of any series, and three degraded runs in an hour."""


def make_rule(row: Mapping[str, Any]) -> RuleDefinition:
    """Make a rule of a row's values."""
    return RuleDefinition(
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
    """Return a filter as it is kept; FilterError names what rules cannot watch by.

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
    """Return what a rule can watch of a selection as a filter, and what it cannot."""
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
