"""A selection as conditions on goals: every filter, and the words of `q`."""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.goals.events import STATE_OF
from agents.goals.models import Attempt, Goal
from diagnostics.selection.conditions import matches, narrow, narrow_rows
from diagnostics.selection.query_language import Query, Term, Word
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event
from failsoft.identifiers import first_id

# Margin around the range for events and ids, which lets whole days be skipped.
AROUND = timedelta(hours=1)
COLUMNS = {
    "environment": "environment",
    "provider": "language_model__provider__name",
    "model": "language_model__name",
    "outcome": "outcome",
    "correlation_id": "correlation_id",
}
DEGRADED = ("degraded", "stubbed", "circuit_open", "provider_failed", "budget_exhausted")


def narrow_goals(
    goals: QuerySet[Goal], selection: Selection, since: datetime | None, until: datetime | None
) -> QuerySet[Goal]:
    """Keep the goals of since <= created < until that meet every term and word."""
    if since is not None:
        # Ids carry the time: the index of the list ends the search, not the first goal.
        goals = goals.filter(created_at__gte=since, pk__gte=first_id(since - AROUND))
    if until is not None:
        goals = goals.filter(created_at__lt=until)
    return narrow_rows(goals, selection, lambda term: _condition(term, since), _condition_of_word)


def _condition(term: Term, since: datetime | None) -> Q:
    """Return the condition of a term: on the goal or its attempts, otherwise on its events."""
    if term.field in COLUMNS:
        return matches(COLUMNS[term.field], term)
    match term.field, term.value:
        case "source", None:
            return matches("source", term)
        case "source", _:
            # Who sent the goal, or what made its plan: planner, stub, given.
            return matches("source", term) | matches("plan_source", term)
        case "node", node:
            return _has_attempt(Q(node=node))
        case "attempt", None:
            return ~_has_attempt(Q())
        case "attempt", str(number):
            return _has_attempt(Q(attempt=int(number)))
        case "kind", "degraded":
            return Q(outcome__in=DEGRADED)
        case "kind", str(kind) if kind in STATE_OF:
            return _has_attempt(Q(state=STATE_OF[kind]))
        case "kind", error_type:
            return _has_attempt(Q(error_type=error_type))
    return Q(_event_exists(term, since))


def _has_attempt(condition: Q) -> Q:
    return Q(Exists(Attempt.objects.filter(condition, goal=OuterRef("pk"))))


def _event_exists(term: Term, since: datetime | None) -> Exists:
    """Return whether an event of the goal matches; the caller applies the negation."""
    events = Event.objects.filter(
        project_id=OuterRef("project_id"), correlation_id=OuterRef("correlation_id")
    )
    if since is not None:
        events = events.filter(occurred_at__gte=since - AROUND)
    plain = Term(term.field, term.value, is_exact=term.is_exact)
    return Exists(narrow(events, Selection(text=Query((plain,)))))


def _condition_of_word(word: Word) -> Q:
    in_goal = Q(text_preview__icontains=word.text) | Q(correlation_id__icontains=word.text)
    return in_goal | _has_attempt(Q(preview__icontains=word.text))
