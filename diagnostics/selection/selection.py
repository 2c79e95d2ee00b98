"""The selection of a page or response: a time range, filters and a query `q`.

One parser for both: pages parse leniently, the API strictly. Each filter is served by rollups,
at any size, or by raw events of at most 7 days.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from diagnostics.figures import read_number
from diagnostics.selection.fields import (
    DEFAULT_RANGE,
    FIELDS,
    LONGEST_VALUE,
    NULLABLE,
    OUTCOME_NAMES,
    RANGES,
    RAW_FIELDS,
    SERIES_FIELDS,
    UNKNOWN,
    UTC_NAME,
    VERSION_FIELDS,
    read_moment,
    read_zone,
    value_of,
)
from diagnostics.selection.query_language import (
    Query,
    Term,
    parse_query,
    write_query,
    write_term,
    write_word,
)

T = TypeVar("T")

UNKNOWN_PARAMETER = "unknown parameter"
NOTHING = Query()
ROLLUP_FIELDS = frozenset((*SERIES_FIELDS, *VERSION_FIELDS))
RAW_SPAN = timedelta(days=7)
MOST_DIGITS = 9
# Indexed in every partition, so searches are not limited to seven days.
INDEXED_FIELDS = frozenset({"correlation_id", "name", "reason"})


class FaultsError(ValueError):
    """something is wrong; `faults` says of each name why"""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in faults.items()))
        self.faults = dict(faults)


class SelectionError(FaultsError):
    """a filter could not be read; `faults` says of each parameter why"""


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter in use: its text, and the query string without it."""

    field: str
    text: str
    without: str


@dataclass(frozen=True, slots=True)
class Selection:
    """A range, filters and a query; a filter of None matches null.

    `begin` and `end` are set instead of the preset `range` for a custom range.
    """

    range: str = DEFAULT_RANGE
    filters: Mapping[str, str | None] = field(default_factory=dict)
    text: Query = NOTHING
    begin: datetime | None = None
    end: datetime | None = None
    zone: str = UTC_NAME
    # The default zone, which addresses omit.
    home: str = UTC_NAME
    faults: Mapping[str, str] = field(default_factory=dict)
    # The default range of the page, which its addresses omit.
    default_range: str = DEFAULT_RANGE

    @property
    def span(self) -> timedelta:
        if self.begin and self.end:
            return self.end - self.begin
        return RANGES[self.range]

    @property
    def range_words(self) -> str:
        """The range in words: `24 h`."""
        if self.begin is None:
            return f"{self.range[:-1]} {self.range[-1]}"
        return self.words_of(*((self.begin, self.end) if self.end else (self.begin,)))

    def words_of(self, *ends: datetime) -> str:
        """Return times as they are read, in the zone of the selection."""
        zone = ZoneInfo(self.zone)
        return " to ".join(f"{at.astimezone(zone):%Y-%m-%d %H:%M}" for at in ends)

    @property
    def is_custom(self) -> bool:
        return self.begin is not None or self.end is not None

    @property
    def terms(self) -> tuple[Term, ...]:
        """Every condition on a field: filters and terms of the query."""
        filters = (Term(name, value) for name, value in self.filters.items())
        return tuple(dict.fromkeys((*filters, *self.text.terms)))

    @property
    def needs_versions(self) -> bool:
        """Whether a filter is on a column that only the rollup by version has."""
        return any(term.field in VERSION_FIELDS for term in self.terms)

    @property
    def needs_events(self) -> bool:
        """Whether raw events must be read: no rollup can answer."""
        return bool(self.text.words) or any(t.field in RAW_FIELDS for t in self.terms)

    @property
    def scans_events(self) -> bool:
        """Whether events have to be read one by one: at most 7 days of them."""
        scanned = frozenset(RAW_FIELDS) - INDEXED_FIELDS
        return bool(self.text.words) or any(term.field in scanned for term in self.terms)

    @property
    def rollup_filters(self) -> dict[str, str | None]:
        return {name: v for name, v in self.filters.items() if name in ROLLUP_FIELDS}

    @property
    def series_terms(self) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if term.field in SERIES_FIELDS)

    @property
    def version_terms(self) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if term.field in VERSION_FIELDS)

    @property
    def rollup_terms(self) -> tuple[Term, ...]:
        return (*self.series_terms, *self.version_terms)

    @property
    def counted(self) -> "Selection":
        """This selection, with only those conditions that rollups can express."""
        terms = tuple(term for term in self.text.terms if term.field in ROLLUP_FIELDS)
        return replace(self, filters=self.rollup_filters, text=Query(terms))

    @property
    def without_words(self) -> "Selection":
        return replace(self, text=Query(self.text.terms))

    def only(self, fields: Collection[str]) -> "Selection":
        """Return this selection with conditions on these fields only, without words."""
        terms = tuple(term for term in self.text.terms if term.field in fields)
        filters = {name: value for name, value in self.filters.items() if name in fields}
        return replace(self, filters=filters, text=Query(terms))

    def since(self, until: datetime) -> datetime:
        return self.begin or until - self.span

    def window(self, now: datetime) -> tuple[datetime, datetime]:
        """Return the begin and end of the range; it ends now unless `end` is set."""
        until = self.end or now
        since = self.begin or until - RANGES[self.range]
        return since, max(until, since + timedelta(minutes=1))

    def covered(self, since: datetime, until: datetime, now: datetime) -> tuple[datetime, datetime]:
        """Return the times that rows of since <= t < until cover: nothing is after now."""
        end = self.window(now)[1]
        return since, end if end >= now else until

    def scanned_window(self, now: datetime) -> tuple[datetime, datetime, str | None]:
        """Return the window to scan, and a note if it was shortened."""
        since, until = self.window(now)
        if not self.scans_events or until - since <= RAW_SPAN:
            return since, until, None
        return until - RAW_SPAN, until, NARROWED

    def query(self, **changes: str | None) -> str:
        """Return the query string of this selection with changes; None removes a parameter.

        Defaults are omitted, so that the plain page has the plain address.
        """
        shown = {key: _param_value(value) for key, value in self.filters.items()}
        params = {**self._time_parameters(), **shown, "q": write_query(self.text)}
        params |= changes
        if changes.get("range"):
            params |= {"from": None, "to": None}
        if params.get("range") == self.default_range:
            del params["range"]
        return urlencode([(key, value) for key, value in params.items() if value])

    def query_for(self, **values: str | None) -> str:
        """Return the query string with these filters set to values, including null."""
        return self.query(**{key: _param_value(value) for key, value in values.items()})

    def keeps(self, values: Mapping[str, str | None]) -> bool:
        return keeps_all(self.terms, values)

    def chips(self) -> list[Chip]:
        """Return the filters in use, each with the query string that removes it."""
        chips = [
            Chip(name, "unknown" if value is None else value, self.query(**{name: None}))
            for name, value in self.filters.items()
        ]
        terms, words = self.text.terms, self.text.words
        for term in terms:
            rest = Query(tuple(t for t in terms if t != term), words)
            chips.append(Chip(term.field, write_term(term), replace(self, text=rest).query()))
        for word in words:
            rest = Query(terms, tuple(w for w in words if w != word))
            chips.append(Chip("q", write_word(word), replace(self, text=rest).query()))
        return chips

    def _time_parameters(self) -> dict[str, str | None]:
        zone = None if self.zone == self.home else self.zone
        if not self.is_custom:
            return {"range": self.range, "tz": zone}
        ends = {"from": self.begin, "to": self.end}
        shown = {key: at.isoformat() if at else None for key, at in ends.items()}
        chosen = self.range if self.begin is None else None
        return {"range": chosen, **shown, "tz": zone}


NARROWED = "these filters read single events: the last 7 days of the range are shown"
PARAMETERS = (*FIELDS, "range", "from", "to", "tz", "q")


def read_selection(
    params: Mapping[str, str], home: str | None = None, default_range: str = DEFAULT_RANGE
) -> Selection:
    """Parse a query leniently: `faults` names what is invalid.

    A value that a field cannot have remains a term that matches nothing; anything else is dropped.

    `home` is the user's own zone, empty if unset (then UTC): times without an offset are in it,
    and a requested zone stays in the address, including UTC.
    """
    faults: dict[str, str] = {}
    requested_zone = _read(params, "tz", faults, read_zone)
    zone = requested_zone or (None if home is None else ZoneInfo(home or UTC_NAME))
    begin = _read(params, "from", faults, lambda text: read_moment(text, zone))
    end = _read(params, "to", faults, lambda text: read_moment(text, zone))
    if begin and end and begin >= end:
        faults["to"] = "must be after From"
        begin = end = None
    text = parse_query(params.get("q", ""))
    wrong = [
        f"{term.field} {fault}"
        for term in text.terms
        if (fault := fault_of(term.field, term.value))
    ]
    if messages := [*text.faults, *wrong]:
        faults["q"] = "; ".join(dict.fromkeys(messages))
    return Selection(
        range=_read(params, "range", faults, _read_range) or default_range,
        filters=dict(_filters(params, faults)),
        text=Query(text.terms, text.words),
        begin=begin,
        end=end,
        zone=zone.key if zone else UTC_NAME,
        home="" if requested_zone and home is not None else home or UTC_NAME,
        faults=faults,
        default_range=default_range,
    )


def require_selection(params: Mapping[str, str], known: Collection[str] = PARAMETERS) -> Selection:
    """Parse a query strictly; SelectionError names every invalid parameter.

    A parameter that is not `known` is invalid; the caller may parse some itself.
    """
    selection = read_selection(params)
    unknown = {_cleaned(name): UNKNOWN_PARAMETER for name in params if name not in known}
    if faults := {**selection.faults, **unknown}:
        raise SelectionError(faults)
    return selection


def keeps_all(terms: Iterable[Term], values: Mapping[str, str | None]) -> bool:
    """Whether values meet terms: any of a field's positive ones, none of its negative ones.

    Only terms on the fields in `values` are considered.
    """
    met: dict[str, bool] = {}
    for term in terms:
        if term.field not in values:
            continue
        is_met = _meets(term, values[term.field])
        if term.is_negated and is_met:
            return False
        if not term.is_negated:
            met[term.field] = met.get(term.field, False) or is_met
    return all(met.values())


def _meets(term: Term, value: str | None) -> bool:
    if term.value is None or value is None:
        return term.value is None and value is None
    if term.is_exact:
        return term.value == value
    return term.value.casefold() in value.casefold()


def _filters(params: Mapping[str, str], faults: dict[str, str]) -> Iterator[tuple[str, str | None]]:
    for name in FIELDS:
        value = value_of(name, _cleaned(params.get(name, "")))
        if not value:
            continue
        is_null = value == UNKNOWN and name in NULLABLE
        if fault := fault_of(name, None if is_null else value):
            faults[name] = fault
        yield name, None if is_null else value


def fault_of(name: str, value: str | None) -> str | None:
    """Return why a field cannot have a value; None if it can."""
    if value is None:
        return None
    if name == "attempt" and not read_number(value, MOST_DIGITS):
        return "must be a number from 1"
    if name == "outcome" and value not in OUTCOME_NAMES:
        return f"must be one of {', '.join(OUTCOME_NAMES)}"
    return None


def _read(
    params: Mapping[str, str], name: str, faults: dict[str, str], read: Callable[[str], T]
) -> T | None:
    text = _cleaned(params.get(name, ""))
    if not text:
        return None
    try:
        return read(text)
    except ValueError as error:
        faults[name] = str(error)
        return None


def _read_range(text: str) -> str:
    if text not in RANGES:
        raise ValueError(f"must be one of {', '.join(RANGES)}")
    return text


def _cleaned(value: str) -> str:
    shown = (char if char.isprintable() else "" for char in value[:LONGEST_VALUE])
    return "".join(shown).strip()


def _param_value(value: str | None) -> str:
    return UNKNOWN if value is None else value
