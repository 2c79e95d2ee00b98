"""A selection as conditions on goals: every filter of the bar, and the words of `q`."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.goals.models import Attempt, Goal
from diagnostics.selection.conditions import narrow
from diagnostics.selection.query_language import Query, Term, Word
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event
from failsoft.identifiers import first_id

# Events and ids are looked for around the range: whole days are skipped.
AROUND = timedelta(hours=1)
MODEL_COLUMNS = {
    "provider": "language_model__provider__name",
    "model": "language_model__name",
}
STATES = {
    "succeeded": Attempt.State.VALID,
    "parse_invalid": Attempt.State.INVALID,
    "provider_error": Attempt.State.CALL_FAILED,
}
DEGRADED = (
    "degraded",
    "stubbed",
    "circuit_open",
    "provider_failed",
    "budget_exhausted",
)


def narrow_goals(
    goals: QuerySet[Goal],
    selection: Selection,
    since: datetime | None,
    until: datetime | None,
) -> QuerySet[Goal]:
    """Keep the goals of since <= created < until that meet every term and word."""
    if since is not None:
        # Ids carry the time: the index of the list ends the search, not the first goal.
        goals = goals.filter(created_at__gte=since, pk__gte=first_id(since - AROUND))
    if until is not None:
        goals = goals.filter(created_at__lt=until)
    terms = selection.terms
    for name in dict.fromkeys(term.field for term in terms):
        mine = [term for term in terms if term.field == name]
        goals = _narrow_field(goals, mine, since)
    for word in selection.text.words:
        condition = _condition_of_word(word)
        goals = goals.filter(~condition if word.is_negated else condition)
    return goals


def _narrow_field(
    goals: QuerySet[Goal], terms: Iterable[Term], since: datetime | None
) -> QuerySet[Goal]:
    wanted = Q()
    for term in terms:
        condition = _condition(term, since)
        if term.is_negated:
            goals = goals.exclude(condition)
        else:
            wanted |= condition
    return goals.filter(wanted)


def _condition(term: Term, since: datetime | None) -> Q:
    read = READ.get(term.field)
    return read(term) if read else Q(_event_exists(term, since))


def _of_column(column: str) -> Callable[[Term], Q]:
    def read(term: Term) -> Q:
        return _matches(column, term)

    return read


def _matches(column: str, term: Term, part: str = "icontains") -> Q:
    if term.value is None:
        return Q(**{f"{column}__isnull": True})
    return Q(**{column if term.is_exact else f"{column}__{part}": term.value})


def _of_source(term: Term) -> Q:
    """Who sent the goal, or what made its plan: planner, stub, given."""
    found = _matches("source", term)
    return found if term.value is None else found | _matches("plan_source", term)


def _of_reference(term: Term) -> Q:
    return _matches("correlation_id", term, "startswith")


def _of_node(term: Term) -> Q:
    return Q(_attempt_exists(Q(node=term.value)))


def _of_attempt(term: Term) -> Q:
    if term.value is None:
        return ~Q(_attempt_exists(Q()))
    return Q(_attempt_exists(Q(attempt=int(term.value))))


def _of_kind(term: Term) -> Q:
    """A kind of event by what the goal's own rows say of it, or a type of error."""
    if term.value == "degraded":
        return Q(outcome__in=DEGRADED)
    if state := STATES.get(term.value or ""):
        return Q(_attempt_exists(Q(state=state)))
    return Q(_attempt_exists(Q(error_type=term.value)))


READ: Mapping[str, Callable[[Term], Q]] = {
    "environment": _of_column("environment"),
    "provider": _of_column(MODEL_COLUMNS["provider"]),
    "model": _of_column(MODEL_COLUMNS["model"]),
    "outcome": _of_column("outcome"),
    "source": _of_source,
    "correlation_id": _of_reference,
    "node": _of_node,
    "attempt": _of_attempt,
    "kind": _of_kind,
}
"""Fields that goals and their attempts have; of others their events are asked."""


def _attempt_exists(condition: Q) -> Exists:
    return Exists(Attempt.objects.filter(condition, goal=OuterRef("pk")))


def _event_exists(term: Term, since: datetime | None) -> Exists:
    """Ask the events of the goal; what is turned round is turned round by the caller."""
    events = Event.objects.filter(
        project_id=OuterRef("project_id"), correlation_id=OuterRef("correlation_id")
    )
    if since is not None:
        events = events.filter(occurred_at__gte=since - AROUND)
    plain = Term(term.field, term.value, is_exact=term.is_exact)
    return Exists(narrow(events, Selection(text=Query((plain,)))))


def _condition_of_word(word: Word) -> Q:
    said = Q(text_preview__icontains=word.text) | Q(correlation_id__icontains=word.text)
    return said | Q(_attempt_exists(Q(preview__icontains=word.text)))
