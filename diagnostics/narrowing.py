"""A selection as conditions on events: every filter, and the words of `q`."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

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
SEARCHED = ("correlation_id", "provider", "model", "source", "reason", "node")
NOTHING = Q(pk__in=[])


def narrow(events: QuerySet[Event], selection: Selection) -> QuerySet[Event]:
    """Keep the events that meet every term and word of a selection; no times."""
    terms = selection.terms
    for name in dict.fromkeys(term.field for term in terms):
        events = _narrow_field(events, [term for term in terms if term.field == name])
    for word in selection.text.words:
        condition = _condition_of_word(word)
        events = events.filter(~condition if word.is_negated else condition)
    return events


def within(
    events: QuerySet[Event], since: datetime | None, until: datetime | None
) -> QuerySet[Event]:
    """Keep the events of since <= t < until; None leaves an end open."""
    if since is not None:
        events = events.filter(occurred_at__gte=since)
    return events if until is None else events.filter(occurred_at__lt=until)


def _narrow_field(events: QuerySet[Event], terms: Iterable[Term]) -> QuerySet[Event]:
    wanted = Q()
    for term in terms:
        if term.is_negated:
            events = events.exclude(_condition(term))
        else:
            wanted |= _condition(term)
    return events.filter(wanted)


def _condition(term: Term) -> Q:
    if term.value is None:
        return Q(**{f"{term.field}__isnull": True})
    if term.field in ERROR_KEYS:
        found = {ERROR_KEYS[term.field]: term.value}
        return Q(_payload_exists(validation_errors__contains=[found]))
    if term.field == "kind":
        fields = ("kind", "parse_error_type", "call_error_type")
        return _any_of({field: term.value for field in fields})
    if term.field == "outcome":
        return OUTCOMES[term.value]
    if term.field == "name":
        return _named(term.value)
    if term.field == "attempt":
        return Q(attempt=int(term.value))
    lookup = "" if term.is_exact else "__icontains"
    return Q(**{f"{term.field}{lookup}": term.value})


def _named(name: str) -> Q:
    try:
        node, kind = split_name(name)
    except ValueError:
        return NOTHING
    return Q(node=node, kind=kind.value)


def _condition_of_word(word: Word) -> Q:
    found = _any_of({f"{field}__icontains": word.text for field in SEARCHED})
    return found | Q(_payload_exists(raw_output_preview__icontains=word.text))


def _any_of(lookups: dict[str, str]) -> Q:
    found = Q()
    for name, value in lookups.items():
        found |= Q(**{name: value})
    return found


def _payload_exists(**lookups: object) -> Exists:
    mine = {name: OuterRef(name) for name in ("project_id", "event_id", "occurred_at")}
    return Exists(EventPayload.objects.filter(**mine, **lookups))
