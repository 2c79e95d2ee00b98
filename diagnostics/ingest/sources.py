"""Sources: how much each sends, how much is invalid, and which have gone silent."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from diagnostics.accounts.models import ApiKey
from diagnostics.figures import Tone
from diagnostics.queries.sums import Question, Slots, sum_rollups
from diagnostics.store.sql import fetch, statement
from diagnostics.store.windows import Grain, align_to

HOUR = timedelta(hours=1)
LOOKED_AT = timedelta(days=7)
DAY_HOURS = 24
# A source is silent if it sent nothing in the current hour and the one before.
SILENT_HOURS = 2


@dataclass(frozen=True, slots=True)
class Sender:
    """A source with its events and invalid answers in the last 24 hours."""

    name: str | None
    events: int
    invalid: int
    last_hour: datetime
    is_silent: bool


def sources_of(project_id: int, now: datetime, span: timedelta = LOOKED_AT) -> list[Sender]:
    """Return every source of a span until now, the silent ones first, then the busiest."""
    window = align_to(Grain.HOUR, now - span, now)
    slots = Slots(window.since, HOUR, (window.until - window.since) // HOUR)
    question = Question(window, ("source",), ("events", "invalid"), slots=slots)
    hours_by_source: dict[str | None, dict[int, tuple[int, int]]] = defaultdict(dict)
    for name, slot, events, invalid in sum_rollups(project_id, question):
        if events:
            hours_by_source[name][slot] = (events, invalid)
    sources = []
    for name, hours in hours_by_source.items():
        recent = [counts for slot, counts in hours.items() if slot >= slots.count - DAY_HOURS]
        last = max(hours)
        sender = Sender(
            name=name,
            events=sum(events for events, _ in recent),
            invalid=sum(invalid for _, invalid in recent),
            last_hour=slots.since + last * slots.width,
            is_silent=last < slots.count - SILENT_HOURS,
        )
        sources.append(sender)
    return sorted(sources, key=lambda sender: (not sender.is_silent, -sender.events))


def lag_seconds(project_id: int) -> float | None:
    """Return the 95th percentile of the way of the newest events, None without any."""
    ((seconds,),) = fetch(statement("lag_seconds"), {"project": project_id})
    return None if seconds is None else float(seconds)


def key_state(key: ApiKey, now: datetime) -> tuple[Tone, str]:
    if key.revoked_at is not None:
        return "quiet", "revoked"
    if key.expires_at is not None and key.expires_at <= now:
        return "bad", "expired"
    return ("good", "live") if key.last_used_at else ("quiet", "never used")
