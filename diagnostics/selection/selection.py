"""What a page or an answer is narrowed to: a range of time, filters, and a query `q`.

One parser for both: pages read leniently, the API strictly. Each filter says what answers
it: rollups at any size, or raw events of at most 7 days.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from diagnostics.selection.fields import (
    FIELDS,
    LONGEST_VALUE,
    NULLABLE,
    OUTCOMES,
    RAW_FIELDS,
    SERIES_FIELDS,
    UNKNOWN,
    VERSION_FIELDS,
)
from diagnostics.selection.query_language import (
    Query,
    Term,
    parse_query,
    write_query,
    write_term,
    write_word,
)
from diagnostics.selection.ranges import DEFAULT_RANGE, RANGES, UTC_NAME, read_moment, read_zone

T = TypeVar("T")

UNKNOWN_PARAMETER = "unknown parameter"
NOTHING = Query()
ROLLUP_FIELDS = frozenset((*SERIES_FIELDS, *VERSION_FIELDS))
RAW_SPAN = timedelta(days=7)
MOST_DIGITS = 9
# Found by an index in every day there is: no need to stay within seven.
INDEXED_FIELDS = frozenset({"correlation_id", "name", "reason"})


class FaultsError(ValueError):
    """something is wrong; `faults` says of each name why"""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {why}" for name, why in faults.items()))
        self.faults = dict(faults)


class SelectionError(FaultsError):
    """a filter could not be read; `faults` says of each parameter why"""


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is set: what it says, and the query string without it."""

    field: str
    text: str
    without: str


@dataclass(frozen=True, slots=True)
class Selection:
    """A range, the filters that are set, and a query; a filter of None asks for null.

    `begin` and `end` are set instead of the preset `range` when times were asked for.
    """

    range: str = DEFAULT_RANGE
    filters: Mapping[str, str | None] = field(default_factory=dict)
    text: Query = NOTHING
    begin: datetime | None = None
    end: datetime | None = None
    zone: str = UTC_NAME
    # The zone that is meant when none is asked for: an address leaves it out.
    home: str = UTC_NAME
    faults: Mapping[str, str] = field(default_factory=dict)
    # The range of the page when none is asked for: its addresses leave it out.
    default_range: str = DEFAULT_RANGE

    @property
    def span(self) -> timedelta:
        """How far the range reaches back."""
        if self.begin and self.end:
            return self.end - self.begin
        return RANGES[self.range]

    @property
    def range_words(self) -> str:
        """The range as it is read: `24 h`."""
        if self.begin is None:
            return f"{self.range[:-1]} {self.range[-1]}"
        return self.words_of(*((self.begin, self.end) if self.end else (self.begin,)))

    def words_of(self, *ends: datetime) -> str:
        """Return times as they are read, in the zone of the selection."""
        zone = ZoneInfo(self.zone)
        return " to ".join(f"{at.astimezone(zone):%Y-%m-%d %H:%M}" for at in ends)

    @property
    def is_custom(self) -> bool:
        """Whether times were asked for, not a preset."""
        return self.begin is not None or self.end is not None

    @property
    def terms(self) -> tuple[Term, ...]:
        """Every condition on a field: filters and terms of the query alike."""
        given = (Term(name, value) for name, value in self.filters.items())
        return tuple(dict.fromkeys((*given, *self.text.terms)))

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
        return bool(self.text.words) or any(t.field in scanned for t in self.terms)

    @property
    def rollup_filters(self) -> dict[str, str | None]:
        """The filters on columns that rollups have."""
        return {name: v for name, v in self.filters.items() if name in ROLLUP_FIELDS}

    @property
    def series_terms(self) -> tuple[Term, ...]:
        """The conditions on columns of every rollup."""
        return tuple(term for term in self.terms if term.field in SERIES_FIELDS)

    @property
    def version_terms(self) -> tuple[Term, ...]:
        """The conditions on columns of the rollup by version."""
        return tuple(term for term in self.terms if term.field in VERSION_FIELDS)

    @property
    def rollup_terms(self) -> tuple[Term, ...]:
        """The conditions that rollups can meet."""
        return (*self.series_terms, *self.version_terms)

    @property
    def counted(self) -> "Selection":
        """This selection, with no other conditions than rollups can meet."""
        kept = tuple(term for term in self.text.terms if term.field in ROLLUP_FIELDS)
        return replace(self, filters=self.rollup_filters, text=Query(kept))

    @property
    def without_words(self) -> "Selection":
        """This selection, without the words of its query."""
        return replace(self, text=Query(self.text.terms))

    def only(self, fields: Collection[str]) -> "Selection":
        """This selection with conditions on these fields alone, without words."""
        kept = tuple(term for term in self.text.terms if term.field in fields)
        filters = {name: value for name, value in self.filters.items() if name in fields}
        return replace(self, filters=filters, text=Query(kept))

    def since(self, until: datetime) -> datetime:
        """Where the range begins when it ends at `until`."""
        return self.begin or until - self.span

    def window(self, now: datetime) -> tuple[datetime, datetime]:
        """Where the range begins and ends; it ends now unless an end was asked for."""
        until = self.end or now
        since = self.begin or until - RANGES[self.range]
        return since, max(until, since + timedelta(minutes=1))

    def covered(self, since: datetime, until: datetime, now: datetime) -> tuple[datetime, datetime]:
        """Return the times that rows of since <= t < until tell of: nothing lies after now."""
        end = self.window(now)[1]
        return since, end if end >= now else until

    def scanned_window(self, now: datetime) -> tuple[datetime, datetime, str | None]:
        """Return the window that is read, and what to say when it was made shorter."""
        since, until = self.window(now)
        if not self.scans_events or until - since <= RAW_SPAN:
            return since, until, None
        return until - RAW_SPAN, until, NARROWED

    def query(self, **changes: str | None) -> str:
        """Write the query string of this selection with changes; None takes one out.

        What is the default is left out, so that the plain page has the plain address.
        """
        shown = {key: _written(value) for key, value in self.filters.items()}
        asked = {**self._time_parameters(), **shown, "q": write_query(self.text)}
        asked |= changes
        if changes.get("range"):
            asked |= {"from": None, "to": None}
        if asked.get("range") == self.default_range:
            del asked["range"]
        return urlencode([(key, value) for key, value in asked.items() if value])

    def query_for(self, **values: str | None) -> str:
        """Write the query string with these filters set to values, null included."""
        return self.query(**{key: _written(value) for key, value in values.items()})

    def keeps(self, values: Mapping[str, str | None]) -> bool:
        """Whether something with these values lies inside the selection."""
        return keeps_all(self.terms, values)

    def chips(self) -> list[Chip]:
        """Return what is set, each with the way to take it out."""
        found = [
            Chip(name, "unknown" if value is None else value, self.query(**{name: None}))
            for name, value in self.filters.items()
        ]
        return [*found, *self._query_chips()]

    def _query_chips(self) -> Iterator[Chip]:
        terms, words = self.text.terms, self.text.words
        for term in terms:
            rest = Query(tuple(t for t in terms if t != term), words)
            yield Chip(term.field, write_term(term), replace(self, text=rest).query())
        for word in words:
            rest = Query(terms, tuple(w for w in words if w != word))
            yield Chip("q", write_word(word), replace(self, text=rest).query())

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
    asked: Mapping[str, str], home: str | None = None, default_range: str = DEFAULT_RANGE
) -> Selection:
    """Read a query leniently: `faults` names what is not understood.

    A value that a field cannot have stays a term that nothing meets; all else is left out.

    `home` is the reader's own zone, empty when they told none (UTC then): times without
    an offset are meant in it, and a zone that is asked for stays in the address, UTC too.
    """
    faults: dict[str, str] = {}
    given = _read(asked, "tz", faults, read_zone)
    zone = given or (None if home is None else ZoneInfo(home or UTC_NAME))
    begin = _read(asked, "from", faults, lambda text: read_moment(text, zone))
    end = _read(asked, "to", faults, lambda text: read_moment(text, zone))
    if begin and end and begin >= end:
        faults["to"] = "must be after From"
        begin = end = None
    text = parse_query(asked.get("q", ""))
    wrong = [f"{t.field} {fault}" for t in text.terms if (fault := fault_of(t.field, t.value))]
    if said := [*text.faults, *wrong]:
        faults["q"] = "; ".join(dict.fromkeys(said))
    return Selection(
        range=_read(asked, "range", faults, _read_range) or default_range,
        filters=dict(_filters(asked, faults)),
        text=Query(text.terms, text.words),
        begin=begin,
        end=end,
        zone=zone.key if zone else UTC_NAME,
        home="" if given and home is not None else home or UTC_NAME,
        faults=faults,
        default_range=default_range,
    )


def require_selection(asked: Mapping[str, str], known: Collection[str] = PARAMETERS) -> Selection:
    """Read a query strictly; SelectionError names every parameter that is wrong.

    A parameter that is not `known` is wrong; the caller may read some itself.
    """
    selection = read_selection(asked)
    unknown = {_cleaned(name): UNKNOWN_PARAMETER for name in asked if name not in known}
    if faults := {**selection.faults, **unknown}:
        raise SelectionError(faults)
    return selection


def keeps_all(terms: Iterable[Term], values: Mapping[str, str | None]) -> bool:
    """Whether values meet terms: any of a field's positive ones, none of its negative.

    Only terms on the fields that `values` names are asked.
    """
    wanted: dict[str, bool] = {}
    for term in terms:
        if term.field not in values:
            continue
        is_met = _meets(term, values[term.field])
        if term.is_negated and is_met:
            return False
        if not term.is_negated:
            wanted[term.field] = wanted.get(term.field, False) or is_met
    return all(wanted.values())


def _meets(term: Term, value: str | None) -> bool:
    if term.value is None or value is None:
        return term.value is None and value is None
    if term.is_exact:
        return term.value == value
    return term.value.casefold() in value.casefold()


def _filters(asked: Mapping[str, str], faults: dict[str, str]) -> Iterator[tuple[str, str | None]]:
    for name in FIELDS:
        value = _cleaned(asked.get(name, ""))
        if not value:
            continue
        is_null = value == UNKNOWN and name in NULLABLE
        if fault := fault_of(name, None if is_null else value):
            faults[name] = fault
        yield name, None if is_null else value


def fault_of(name: str, value: str | None) -> str | None:
    """Say why a field cannot have a value; None where it can."""
    if value is None:
        return None
    if name == "attempt" and not _is_number(value):
        return "must be a number from 1"
    if name == "outcome" and value not in OUTCOMES:
        return f"must be one of {', '.join(OUTCOMES)}"
    return None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS and text > "0"


def _read(
    asked: Mapping[str, str], name: str, faults: dict[str, str], read: Callable[[str], T]
) -> T | None:
    text = _cleaned(asked.get(name, ""))
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


def _written(value: str | None) -> str:
    return UNKNOWN if value is None else value
