"""A selection as conditions on events: every filter, and the words of `q`."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db import connection
from django.db.models import Exists, Func, Model, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import IContains

from diagnostics.selection.fields import OUTCOMES
from diagnostics.selection.query_language import Term, Word
from diagnostics.selection.selection import Selection, fault_of
from diagnostics.store.models import Event, EventPayload
from diagnostics.store.rollups import SERIES, VERSION
from diagnostics.store.sql import DETAIL_TEXTS, SEARCHED, execute_prepared, text_of_event
from failsoft.events import split_name

ERROR_KEYS = {"pointer": "path", "code": "code"}
KIND_COLUMNS = ("kind", "parse_error_type", "call_error_type")
SEARCHED_DETAIL = ("raw_output_preview", "tool", "original_error_type", "errors_text")
NOTHING = Q(pk__in=[])
M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Days:
    """The time range of the events, in whose partitions their details are searched."""

    since: datetime | None = None
    until: datetime | None = None


ANY_DAY = Days()


def narrow(events: QuerySet[Event], selection: Selection, days: Days = ANY_DAY) -> QuerySet[Event]:
    """Keep the events that meet every term and word of a selection.

    The caller filters by time: `days` only repeats its range.
    """
    return narrow_rows(
        events,
        selection,
        lambda term: _condition(term, days),
        lambda word: _condition_of_word(word, days),
    )


def narrow_rows(
    rows: QuerySet[M],
    selection: Selection,
    of_term: Callable[[Term], Q],
    of_word: Callable[[Word], Q],
) -> QuerySet[M]:
    """Keep rows that meet any positive term of a field, none of its negative ones, every word."""
    conditions: dict[str, Q] = {}
    for term in selection.terms:
        condition = NOTHING if fault_of(term.field, term.value) else of_term(term)
        if term.is_negated:
            rows = rows.exclude(condition)
        else:
            conditions[term.field] = conditions.get(term.field, Q()) | condition
    for condition in conditions.values():
        rows = rows.filter(condition)
    for word in selection.text.words:
        rows = rows.filter(~of_word(word) if word.is_negated else of_word(word))
    return rows


def within(
    events: QuerySet[Event], since: datetime | None, until: datetime | None
) -> QuerySet[Event]:
    """Keep the events in since <= t < until; None leaves an end open."""
    if since is not None:
        events = events.filter(occurred_at__gte=since)
    return events if until is None else events.filter(occurred_at__lt=until)


def _condition(term: Term, days: Days) -> Q:
    if term.value is None:
        return matches(term.field, term)
    if term.field in ERROR_KEYS:
        error = {ERROR_KEYS[term.field]: term.value}
        return Q(_payload_exists(Q(validation_errors__contains=[error]), days))
    if term.field == "kind":
        return _any_of(dict.fromkeys(KIND_COLUMNS, term.value))
    if term.field == "outcome":
        return Q(**OUTCOMES[term.value])
    if term.field == "name":
        try:
            node, kind = split_name(term.value)
        except ValueError:
            return NOTHING
        return Q(node=node, kind=kind.value)
    if term.field == "attempt":
        return Q(attempt=int(term.value))
    return matches(term.field, term)


def matches(column: str, term: Term) -> Q:
    """Return the condition that a column has the value of a term, or a part of it."""
    if term.value is None:
        return Q(**{f"{column}__isnull": True})
    if term.is_exact:
        return Q(**{column: term.value})
    # Users often have only the beginning of a reference.
    lookup = "startswith" if term.field == "correlation_id" else "icontains"
    return Q(**{f"{column}__{lookup}": term.value})


def _condition_of_word(word: Word, days: Days) -> Q:
    details = [f"{field}__icontains" for field in SEARCHED_DETAIL]
    inside = _any_of(dict.fromkeys(details, word.text))
    return Q(IContains(_Joined(*SEARCHED), word.text)) | Q(_payload_exists(inside, days))


class _Joined(Func):
    """Columns joined into one text for searching; no word contains the separator."""

    template = r"concat_ws(E'\x1f', %(expressions)s)"
    output_field = TextField()


def _any_of(lookups: Mapping[str, str]) -> Q:
    condition = Q()
    for name, value in lookups.items():
        condition |= Q(**{name: value})
    return condition


def _payload_exists(condition: Q, days: Days) -> Exists:
    same_row = {name: OuterRef(name) for name in ("project_id", "event_id", "occurred_at")}
    details = EventPayload.objects.annotate(errors_text=Cast("validation_errors", TextField()))
    # With the range on the details too, the server reads these partitions only; the event's
    # range would apply row by row.
    if days.since is not None:
        details = details.filter(occurred_at__gte=days.since)
    if days.until is not None:
        details = details.filter(occurred_at__lt=days.until)
    return Exists(details.filter(condition, **same_row))


COLUMNS = frozenset((*SERIES, *VERSION))
TABLES: Mapping[str, Sequence[str]] = {"series": SERIES, "version": VERSION}
"""The fields of each dimension table of rollups."""
NARROWED = " AND {0}_id IN (SELECT id FROM diagnostics_{0} WHERE project_id = %(project)s {1})"


def write_terms(
    terms: Sequence[Term], tables: Mapping[str, str] | None = None, among: Collection[str] = COLUMNS
) -> str:
    """Write `AND ...` for each field; the values are the parameters `term_<place>`.

    Any of a field's positive terms must hold, and none of its negative ones. `tables`
    names the tables `series` and `version` if a bare column would be ambiguous;
    fields that are not `among` these are passed over.
    ValueError for a field that neither series nor versions have.
    """
    fields = dict.fromkeys(term.field for term in terms)
    if unknown := fields.keys() - COLUMNS:
        raise ValueError(f"rollups do not know {min(unknown)}")
    return " ".join(_write_field(name, terms, tables or {}) for name in fields if name in among)


def write_narrowing(terms: Sequence[Term]) -> str:
    """Write the terms as conditions on a rollup's own columns, series_id and version_id.

    This reads only matching rows, instead of aggregating all and dropping most.
    """
    conditions = {table: write_terms(terms, among=TABLES[table]) for table in TABLES}
    return "".join(NARROWED.format(table, text) for table, text in conditions.items() if text)


def term_params(terms: Sequence[Term]) -> Mapping[str, str | None]:
    return {
        f"term_{index}": term.value.casefold() if term.value and not term.is_exact else term.value
        for index, term in enumerate(terms)
    }


def _write_field(name: str, terms: Sequence[Term], tables: Mapping[str, str]) -> str:
    table = tables.get("series" if name in SERIES else "version")
    column = f"{table}.{name}" if table else name
    own_terms = [(place, term) for place, term in enumerate(terms) if term.field == name]
    accepted = [_write_term(column, *item) for item in own_terms if not item[1].is_negated]
    rejected = [_write_term(column, *item) for item in own_terms if item[1].is_negated]
    parts = [f"({' OR '.join(accepted)})"] if accepted else []
    parts += [f"NOT coalesce({text}, false)" for text in rejected]
    return " ".join(f"AND {part}" for part in parts)


def _write_term(column: str, place: int, term: Term) -> str:
    if term.value is None or term.is_exact:
        return f"{column} IS NOT DISTINCT FROM %(term_{place})s"
    return f"strpos(lower({column}), %(term_{place})s) > 0"


HAS_WORD = "upper({text}) LIKE upper(%(word_{place})s)"


def write_words(words: Sequence[Word], event: str, details: str) -> Sequence[str]:
    """Write `AND ...` for words, as conditions of which a failure meets one if it has them.

    `event` and `details` name the joined tables; the words are the parameters `word_<place>`.
    The first word is in the details, or else in the event: each has an index, while an OR of
    both would read every failure.
    """
    inside = [word_in_details(details, place) for place in range(len(words))]
    beside = [word_in_event(event, place) for place in range(len(words))]
    first = next((place for place, word in enumerate(words) if not word.is_negated), None)
    others = "".join(
        f" AND coalesce({inside[place]} OR {beside[place]}, false) = {not word.is_negated}"
        for place, word in enumerate(words)
        if place != first
    )
    if first is None:
        return [others]
    return [
        f"AND {inside[first]}{others}",
        f"AND {beside[first]} AND NOT coalesce({inside[first]}, false){others}",
    ]


def word_in_event(event: str, place: int = 0) -> str:
    """Write whether a failure has a word, as its index knows it."""
    return HAS_WORD.format(text=text_of_event(f"{event}."), place=place)


def word_in_details(details: str, place: int = 0) -> str:
    """Write whether details have a word, as their index knows it."""
    parts = [HAS_WORD.format(text=f"{details}.{text}", place=place) for text in DETAIL_TEXTS]
    return f"({' OR '.join(parts)})"


def word_params(words: Iterable[Word]) -> Mapping[str, str]:
    """Return the parameters that `write_words` names: patterns."""
    escape = connection.ops.prep_for_like_query
    return {f"word_{place}": f"%{escape(word.text)}%" for place, word in enumerate(words)}


MOST_VALUES = 24
KnownValues = Mapping[str, Sequence[str | None]]
NEWEST = """
(SELECT '{field}', {field} FROM diagnostics_{table} WHERE project_id = %(project)s
 GROUP BY {field} ORDER BY max(first_seen) DESC LIMIT %(most)s)
"""


def known_values(project_id: int, limit: int = MOST_VALUES) -> KnownValues:
    """Return the newest values of each field by name, null last; one query."""
    newest = (
        NEWEST.format(field=field, table=table)
        for table, fields in TABLES.items()
        for field in fields
        # No choice of a page.
        if field != "schema_version"
    )
    parameters = {"project": project_id, "most": limit}
    values_by_field: dict[str, list[str | None]] = {}
    for field, value in execute_prepared(" UNION ALL ".join(newest), parameters):
        values_by_field.setdefault(field, []).append(value)
    return {
        name: sorted(values, key=lambda value: (value is None, value or ""))
        for name, values in values_by_field.items()
    }
