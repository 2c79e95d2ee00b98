"""Rules as values: their fields and parameters, checked, and the built-in ones."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from math import isfinite
from typing import Annotated, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from pydantic import AfterValidator, Field, StrictBool, StrictInt, WithJsonSchema

from diagnostics.alerting.signals import (
    FIRST_ATTEMPTS,
    RATIOS,
    Measured,
    Signal,
    measured,
    measured_kinds,
)
from diagnostics.alerting.states import HoldTimes, Seconds, Severity
from diagnostics.analysis.detectors.thresholds import (
    COUNT_SECONDS,
    DEFAULT_FAILED,
    DEFAULT_LIMIT,
    Parameters,
)
from diagnostics.queries.call_counts import kind_filter
from diagnostics.selection.fields import SERIES_FIELDS, UNKNOWN
from diagnostics.selection.query_language import (
    MOST_TERMS,
    Query,
    Term,
    write_query,
    write_term,
    write_word,
)
from diagnostics.selection.selection import (
    FaultsError,
    Selection,
    SelectionError,
    keeps_all,
    read_selection,
    require_selection,
)
from diagnostics.store.rollups import CALL_ERRORS, INVALID

LONGEST_WINDOW = 6 * 3600
SHORTEST_WINDOW = 60
MOST = 10**12
LONGEST_SILENCE = 30 * 86_400
MONEY_UNITS = 1_000_000
"""Money is counted in millionths, so that counts stay whole numbers."""
DETECTORS: Mapping[Signal, tuple[str, ...]] = {
    signal: ("change", "threshold")
    if signal in RATIOS
    else {Signal.LATENCY_P95: ("threshold",), Signal.SOURCE_SILENT: ("absent",)}.get(
        signal, ("count",)
    )
    for signal in Signal
}
"""The detectors that can judge each signal; the first is the usual one."""


class ParametersError(FaultsError):
    """the parameters of a rule are wrong; `faults` says of each one why"""


class Figure(NamedTuple):
    """Between which bounds a parameter must lie, and what it usually is."""

    above: float
    below: float
    usual: float


USUAL_LIMITS: Mapping[str, float] = {
    Signal.CALL_FAILURE_RATIO: 0.1,
    Signal.FIRST_PASS_FAILURE_RATIO: 0.2,
    Signal.REPAIR_SUCCESS_RATIO: 0.6,
    Signal.LATENCY_P95: 30_000,
}
"""Limits that usable models keep: a call fails more often than a whole run degrades."""
ALLOWED: Mapping[str, tuple[str, ...]] = {
    "change": (),
    "threshold": ("limit",),
    "count": ("count", "seconds"),
    "absent": ("seconds",),
}


def check_parameters(
    signal: str, detector: str, fields: Mapping[str, Any]
) -> dict[str, float | int]:
    """Check and complete the parameters of a rule; gives what is to be kept.

    Raises ParametersError.
    """
    if signal not in list(Signal):
        raise ParametersError({"signal": f"one of {', '.join(Signal)}"})
    able = DETECTORS[Signal(signal)]
    if detector not in able:
        raise ParametersError({"detector": f"{signal} supports {', '.join(able)}"})
    if not isinstance(fields, Mapping):
        raise ParametersError({"parameters": "an object"})
    allowed = ALLOWED[detector]
    listed = ", ".join(allowed) or "no parameter"
    faults = {
        f"parameters.{str(name)[:40]}": f"unknown; {detector} takes {listed}"
        for name in fields
        if name not in allowed
    }
    kept = {}
    for name in allowed:
        figure = figure_of(signal, detector, name)
        kept[name] = fields.get(name, figure.usual)
        if fault := _fault(name, kept[name], figure):
            faults[f"parameters.{name}"] = fault
    if faults:
        raise ParametersError(faults)
    return kept


def read_parameters(signal: str, kept: Mapping[str, Any]) -> Parameters:
    """Read what was kept: a lowest success becomes a highest failure."""
    if signal == Signal.REPAIR_SUCCESS_RATIO and "limit" in kept:
        kept = {**kept, "limit": 1 - kept["limit"]}
    if signal == Signal.RETRY_MONEY and "count" in kept:
        kept = {**kept, "count": kept["count"] * MONEY_UNITS}
    return Parameters(**kept)


def figure_of(signal: str, detector: str, name: str) -> Figure:
    if name == "limit":
        most = 3_600_000 if signal == Signal.LATENCY_P95 else 1
        return Figure(0, most, USUAL_LIMITS.get(signal, DEFAULT_LIMIT))
    if name == "seconds":
        longest = LONGEST_WINDOW if detector == "count" else LONGEST_SILENCE
        return Figure(SHORTEST_WINDOW - 1, longest + 1, COUNT_SECONDS)
    return Figure(0, MOST, DEFAULT_FAILED if signal == Signal.DEGRADED_COUNT else 1)


def _fault(name: str, value: object, figure: Figure) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "a number"
    if not isfinite(value) or not figure.above < value < figure.below:
        return f"above {figure.above:g} and below {figure.below:g}"
    if name == "seconds" and value != int(value):
        return "whole seconds"
    return None


LONGEST_FILTER = 1_000
ADDRESS = re.compile(r"[a-z_]+=\S*")
"""A filter as in the address of a page; any other is the language of the filter bar."""
MORE_SCOPE: Mapping[Signal, tuple[str, ...]] = {
    Signal.CALL_FAILURE_RATIO: ("kind",),
    Signal.SOURCE_SILENT: ("source",),
}
"""What a rule may be narrowed by beside the fields of a series, by its signal."""


SILENCED_BY = ("kind",)
"""What a silence may name beside the fields of a series."""
BY_VERSION = ("threshold", "count")
"""Detectors that look back six hours at most: as far as single events are counted."""


def more_scope(signal: object, detector: object) -> tuple[str, ...]:
    """Return the fields beside those of series that a rule on a signal may name."""
    more = next((more for name, more in MORE_SCOPE.items() if name == signal), ())
    return (*more, "prompt_version") if _knows_versions(signal) and detector in BY_VERSION else more


def _knows_versions(signal: object) -> bool:
    return signal in list(Signal) and measured(Signal(str(signal))) is not None


class FilterError(ValueError):
    """a filter has terms that cannot be watched by; `wrong` are these"""

    def __init__(self, wrong: Iterable[str], more: Sequence[str] = (), hint: str = "") -> None:
        *names, last = (*SERIES_FIELDS, *more)
        self.wrong = list(dict.fromkeys(wrong))
        named = f"{', '.join(self.wrong)}{hint}"
        super().__init__(f"only {', '.join(names)} and {last} can be used here; refused: {named}")


@lru_cache(maxsize=4_096)
def terms_of(text: str) -> tuple[Term, ...]:
    return read_selection(dict(parse_qsl(text))).terms


def _in_order(group_by: list[str]) -> list[str]:
    if not set(group_by) <= set(SERIES_FIELDS):
        raise ValueError(f"a list of {', '.join(SERIES_FIELDS)}")
    return [name for name in SERIES_FIELDS if name in group_by]


class EvaluatedFields(HoldTimes):
    name: Annotated[str, Field(min_length=1, max_length=200)]
    filter: Annotated[
        str,
        Field(
            description="a query string on environment, node, provider, model, and, where signal"
            " and detector allow, kind, prompt_version, source; empty: all"
        ),
    ] = ""
    group_by: Annotated[list[str], AfterValidator(_in_order)] = ["provider", "model"]
    signal: Signal
    detector: Annotated[str, WithJsonSchema({"type": "string", "enum": [*ALLOWED]})]
    # Checked by `check_parameters`.
    parameters: Annotated[dict[str, Any], Field(description="limit; count, seconds; seconds")] = {}
    severity: Annotated[
        Severity, WithJsonSchema({"type": "string", "description": ", ".join(Severity)})
    ] = Severity.WARNING


class RuleFields(EvaluatedFields):
    """What a person or program may say of a rule; what is left out is as usual."""

    routing: list[StrictInt] = []
    renotify_seconds: Seconds | None = None
    escalate_seconds: Seconds | None = None
    escalation: list[StrictInt] = []
    is_enabled: StrictBool = True


class RuleDefinition(EvaluatedFields):
    id: int
    version: int

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return tuple(term for term in terms_of(self.filter) if term.field != "kind")

    @cached_property
    def is_by_version(self) -> bool:
        """Whether single events have to be counted: minutes are not known by prompt version."""
        return any(term.field == "prompt_version" for term in self.terms)

    @cached_property
    def measured(self) -> Measured | None:
        """How its signal is counted; None for one that has a source of its own."""
        kinds = [term for term in terms_of(self.filter) if term.field == "kind"]
        if kinds and self.signal is Signal.CALL_FAILURE_RATIO:
            return measured_kinds(columns_of(kinds))
        return measured(self.signal, self.limits.limit, self.detector)

    @property
    def is_of_series(self) -> bool:
        """Whether it tells a change of each series, which the detector of the series judges."""
        is_change = self.detector == "change" and self.measured is FIRST_ATTEMPTS
        return is_change and set(self.group_by) == set(SERIES_FIELDS)

    @cached_property
    def limits(self) -> Parameters:
        return read_parameters(self.signal, self.parameters)

    @property
    def is_latency(self) -> bool:
        """Whether slow calls are the bad ones."""
        return self.signal is Signal.LATENCY_P95


USUAL: Mapping[str, Any] = {"signal": Signal.CALL_FAILURE_RATIO, "detector": "change"}
"""What a rule watches unless it says otherwise."""
STANDARD: Mapping[str, RuleFields] = {
    "change": RuleFields(
        name="Failure rate above baseline",
        group_by=list(SERIES_FIELDS),
        signal=Signal.CALL_FAILURE_RATIO,
        detector="change",
    )
}
"""Out of the box: a change of any series. Its false fires are those of the project."""


SERIES_RULE = RuleDefinition(id=0, version=1, **dict(STANDARD["change"]))
"""What the detector of every series counts, whatever rules a project has."""


def columns_of(kinds: Iterable[Term]) -> tuple[str, ...]:
    """Return the counts of failing calls whose kind meets the terms."""
    return tuple(
        column
        for column in (*INVALID, *CALL_ERRORS)
        if keeps_all(kinds, {"kind": kind_filter(column)})
    )


def check_filter(text: str, more: Sequence[str] = ()) -> str:
    """Return a filter as it is kept; FilterError names the terms that cannot be watched by.

    It is written in the language of the filter bar (model:=m-1 -env:dev), or as in the
    address of a page (provider=acme&model=m-1). What is not understood is refused, not
    left out: without it, all calls would be meant. `more` are fields beside those of series.
    """
    if len(text) > LONGEST_FILTER:
        raise FilterError([f"more than {LONGEST_FILTER} characters"], more)
    try:
        selection = require_selection(
            _read_address(text) if ADDRESS.fullmatch(text) else {"q": text}
        )
    except SelectionError as error:
        faults = error.faults.items()
        raise FilterError((why if name == "q" else name for name, why in faults), more) from error
    kept, dropped = watched(selection, more)
    kinds = [term for term in selection.terms if term.field == "kind"]
    if kinds and not columns_of(kinds):
        dropped = [*dropped, *map(write_term, kinds)]
    if dropped:
        raise FilterError(dropped, more)
    return kept


VERSION_HINT = " (only threshold and count can be narrowed to a prompt version)"


def check_scope(text: str, signal: object, detector: object) -> str:
    """Return the filter of a rule as it is kept; FilterError names what it cannot watch by."""
    more = more_scope(signal, detector)
    try:
        return check_filter(text, more)
    except FilterError as error:
        is_version = any("prompt" in name for name in error.wrong)
        if is_version and _knows_versions(signal) and "prompt_version" not in more:
            raise FilterError(error.wrong, more, VERSION_HINT) from error
        raise


def _read_address(text: str) -> dict[str, str]:
    if unread := [pair for pair in text.split("&") if pair and "=" not in pair]:
        raise FilterError(unread)
    pairs = parse_qsl(text)
    counts = Counter(name for name, _ in pairs)
    if twice := [f"{name} twice" for name, count in counts.items() if count > 1]:
        raise FilterError(twice)
    return dict(pairs)


def watched(selection: Selection, more: Sequence[str] = ()) -> tuple[str, Sequence[str]]:
    """Return what can be watched of a selection as a filter, and the terms that cannot."""
    able = {*SERIES_FIELDS, *more}
    filters = {k: _written(v) for k, v in selection.filters.items() if k in able}
    if terms := tuple(term for term in selection.text.terms if term.field in able):
        filters["q"] = write_query(Query(terms))
    unable = [write_term(term) for term in selection.terms if term.field not in able]
    return urlencode(filters), [*unable, *map(write_word, selection.text.words)]


def filter_of(slices: Sequence[Mapping[str, str | None]]) -> str:
    """Write what slices cover as a filter: their values of every field that all of them name."""
    shared = [name for name in SERIES_FIELDS if all(name in values for values in slices)]
    values = {name: list(dict.fromkeys(values[name] for values in slices)) for name in shared}
    filters = {name: _written(several[0]) for name, several in values.items() if len(several) == 1}
    terms = tuple(
        Term(name, values)
        for name, several in values.items()
        if name not in filters
        for values in several
    )
    text = urlencode({**filters, "q": write_query(Query(terms))} if terms else filters)
    is_short = len(terms) <= MOST_TERMS and len(text) <= LONGEST_FILTER
    return text if is_short else urlencode(filters)


def _written(value: str | None) -> str:
    return UNKNOWN if value is None else value
