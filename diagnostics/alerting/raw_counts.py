"""Counts of single events, for rules on a prompt version: minutes are not counted by it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from django.db import OperationalError, transaction
from psycopg.errors import QueryCanceled

from diagnostics.selection.conditions import term_params, write_terms
from diagnostics.selection.query_language import Term
from diagnostics.store.sql import fetch, measures_of_events, statement

OF_OUTCOMES: Mapping[str, str] = {
    "runs": "sum(ok_first + repaired + bad)",
    "degraded": "sum(bad)",
    "ok_first": "sum(ok_first)",
    "repaired": "sum(repaired)",
}
"""What posted outcomes count, in whose rows no call is told."""
ALWAYS = timedelta(days=36_500)
LIMIT = "SELECT set_config('statement_timeout', %s, true)"


class EventsUncountableError(Exception):
    """there are too many events to count them one by one in the time there is"""


@dataclass(frozen=True, slots=True)
class EventsAsked:
    """Which events of since <= t < until to count, parted at the bounds (ascending)."""

    since: datetime
    until: datetime
    bounds: Sequence[datetime]
    columns: Sequence[str]
    terms: Sequence[Term]
    known_within: timedelta = ALWAYS
    """What arrived later after its minute is left out."""


def count_events(project_id: int, asked: EventsAsked, deadline: float) -> list[tuple[Any, ...]]:
    """Return rows of environment, node, provider, model, the part (from 0), and the columns.

    `deadline` is of the monotonic clock. Raises EventsUncountableError.
    """
    values = {
        "project": project_id,
        "since": asked.since,
        "until": asked.until,
        "bounds": list(asked.bounds),
        "known_within": asked.known_within,
        **term_params(asked.terms),
    }
    with _stopped_at(deadline):
        return fetch(_write(asked), values)


def _write(asked: EventsAsked) -> str:
    of_events = measures_of_events()
    parts = {
        "sums": [f"coalesce(sum({name}), 0)::bigint" for name in asked.columns],
        "of_events": [f"{of_events[name]} AS {name}" for name in asked.columns],
        "of_outcomes": [OF_OUTCOMES.get(name, "0") for name in asked.columns],
        "terms": [write_terms(asked.terms)],
    }
    text = statement("alert_counts_of_events")
    for name, part in parts.items():
        text = text.replace(f"<<{name}>>", ", ".join(part))
    return text


@contextmanager
def _stopped_at(deadline: float) -> Iterator[None]:
    """Let the statement inside run until then; what it did so far is taken back."""
    left_ms = int((deadline - monotonic()) * 1000)
    if left_ms <= 0:
        raise EventsUncountableError
    try:
        with transaction.atomic():
            ((before,),) = fetch("SELECT current_setting('statement_timeout')")
            fetch(LIMIT, [str(left_ms)])
            yield
            fetch(LIMIT, [before])
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise EventsUncountableError from error
        raise
