"""A selection as conditions on events: every filter, and the words of `q`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, Func, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import IContains

from diagnostics.core.events import split_name
from diagnostics.core.query_language import Term, Word
from diagnostics.core.selection import Selection
from diagnostics.models import Event, EventPayload

OUTCOMES = {
    "ok_first": Q(kind="succeeded", attempt=1),
    "repaired": Q(kind="succeeded", attempt__gt=1),
    "degraded": Q(kind="degraded", status="failed"),
    "stubbed": Q(kind="degraded", status="stubbed"),
    "circuit_open": Q(kind="degraded", reason="circuit_open"),
    "provider_failed": Q(kind="degraded", reason="provider_failed"),
    "budget_exhausted": Q(kind="degraded", reason="budget_exhausted"),
}
ERROR_KEYS = {"pointer": "path", "code": "code"}
KIND_COLUMNS = ("kind", "parse_error_type", "call_error_type")
SEARCHED = ("correlation_id", "provider", "model", "source", "reason", "node")
SEARCHED_DETAIL = ("raw_output_preview", "tool", "original_error_type", "told")
NOTHING = Q(pk__in=[])


@dataclass(frozen=True, slots=True)
class Days:
    """The time that the events are of: their details are looked for in these days only."""

    since: datetime | None = None
    until: datetime | None = None


ANY_DAY = Days()


def narrow(events: QuerySet[Event], selection: Selection, days: Days = ANY_DAY) -> QuerySet[Event]:
    """Keep the events that meet every term and word of a selection.

    The times are the caller's: `days` only says which ones it asks for.
    """
    terms = selection.terms
    for name in dict.fromkeys(term.field for term in terms):
        mine = [term for term in terms if term.field == name]
        events = _narrow_field(events, mine, days)
    for word in selection.text.words:
        condition = _condition_of_word(word, days)
        events = events.filter(~condition if word.is_negated else condition)
    return events


def within(
    events: QuerySet[Event], since: datetime | None, until: datetime | None
) -> QuerySet[Event]:
    """Keep the events of since <= t < until; None leaves an end open."""
    if since is not None:
        events = events.filter(occurred_at__gte=since)
    return events if until is None else events.filter(occurred_at__lt=until)


def _narrow_field(events: QuerySet[Event], terms: Iterable[Term], days: Days) -> QuerySet[Event]:
    wanted = Q()
    for term in terms:
        if term.is_negated:
            events = events.exclude(_condition(term, days))
        else:
            wanted |= _condition(term, days)
    return events.filter(wanted)


def _condition(term: Term, days: Days) -> Q:
    if term.value is None:
        return Q(**{f"{term.field}__isnull": True})
    if term.field in ERROR_KEYS:
        found = {ERROR_KEYS[term.field]: term.value}
        return Q(_payload_exists(Q(validation_errors__contains=[found]), days))
    if term.field == "kind":
        return _any_of(dict.fromkeys(KIND_COLUMNS, term.value))
    if term.field == "outcome":
        return OUTCOMES[term.value]
    if term.field == "name":
        return _named(term.value)
    if term.field == "attempt":
        return Q(attempt=int(term.value))
    if term.is_exact:
        return Q(**{term.field: term.value})
    # The beginning of a reference is what people have of it.
    lookup = "startswith" if term.field == "correlation_id" else "icontains"
    return Q(**{f"{term.field}__{lookup}": term.value})


def _named(name: str) -> Q:
    try:
        node, kind = split_name(name)
    except ValueError:
        return NOTHING
    return Q(node=node, kind=kind.value)


def _condition_of_word(word: Word, days: Days) -> Q:
    details = [f"{field}__icontains" for field in SEARCHED_DETAIL]
    inside = _any_of(dict.fromkeys(details, word.text))
    return Q(IContains(_Joined(*SEARCHED), word.text)) | Q(_payload_exists(inside, days))


class _Joined(Func):
    """Columns as one text, which is searched at once; no word holds what parts them."""

    template = r"concat_ws(E'\x1f', %(expressions)s)"
    output_field = TextField()


def _any_of(lookups: Mapping[str, str]) -> Q:
    found = Q()
    for name, value in lookups.items():
        found |= Q(**{name: value})
    return found


def _payload_exists(condition: Q, days: Days) -> Exists:
    mine = {name: OuterRef(name) for name in ("project_id", "event_id", "occurred_at")}
    details = EventPayload.objects.annotate(told=Cast("validation_errors", TextField()))
    # Said of the details too, the server looks into these days; the event says it only
    # row by row.
    if days.since is not None:
        details = details.filter(occurred_at__gte=days.since)
    if days.until is not None:
        details = details.filter(occurred_at__lt=days.until)
    return Exists(details.filter(condition, **mine))
