"""What alert rules look back at: one grouped query for all rules of a project.

Minutes count as they were known 15 minutes after them: what comes later moves no alert.
They are not counted by prompt version: rules on one count single events.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import add
from time import monotonic
from typing import Any

from django.db import OperationalError, transaction
from psycopg.errors import QueryCanceled

from diagnostics.alerting.signals import Count, Measured
from diagnostics.selection.conditions import term_params, write_terms
from diagnostics.selection.query_language import Term
from diagnostics.store.models import Series
from diagnostics.store.rollups import SERIES
from diagnostics.store.sql import MEASURES_OF_EVENTS, change, fetch, fill, statement
from diagnostics.store.windows import LATE, WIDTHS, Grain, floor

MINUTE = WIDTHS[Grain.MINUTE]
MINUTES_REACH = timedelta(hours=6)
COUNTS_KEPT = MINUTES_REACH + timedelta(hours=1)
# Of advisory locks: the first number says what for, the second which project.
LOCK_SPACE = 1_634_496_113
Numbers = Sequence[int]
OF_OUTCOMES: Mapping[str, str] = {
    "runs": "sum(ok_first + repaired + bad)",
    "degraded": "sum(bad)",
    "ok_first": "sum(ok_first)",
    "repaired": "sum(repaired)",
}
"""What posted outcomes count, in whose rows no call is told."""
ALWAYS = timedelta(days=36_500)
HOURS = """UNION ALL
    SELECT series_id, NULL, <<cut>>, <<asked>>
    FROM diagnostics_rollup_hour
    WHERE project_id = %(project)s
        AND bucket >= %(hours_since)s
        AND bucket < %(minutes_since)s"""
LIMIT = "SELECT set_config('statement_timeout', %s, true)"


@dataclass(frozen=True, slots=True)
class SeriesCounts:
    """Counts of every series by columns: of each cut, and of each live minute.

    `seconds` are the lengths of the cuts, shortest first; a series has a row for each.
    Live minutes are told by the second of the epoch that they begin at.
    """

    columns: Sequence[str]
    seconds: Sequence[int]
    cuts: Mapping[int, Mapping[int, Numbers]]
    live: Mapping[int, Mapping[int, Numbers]]
    _places: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    _by_cut: dict[tuple[int, tuple[str, ...]], list[tuple[int, Count]]] = field(
        default_factory=dict
    )

    def by_cut(self, series_id: int, measured: Measured) -> Sequence[tuple[int, Count]]:
        """Return (k, n) of each cut of a series that has counts; many rules ask for the same."""
        key = series_id, measured.columns
        counts = self._by_cut.get(key)
        if counts is None:
            places = self._of(measured)
            counts = self._by_cut[key] = [
                (cut, measured.count([row[place] for place in places]))
                for cut, row in self.cuts.get(series_id, {}).items()
            ]
        return counts

    def by_minute(self, series_id: int, measured: Measured) -> dict[int, Count]:
        places = self._of(measured)
        return {
            minute: measured.count([row[place] for place in places])
            for minute, row in self.live.get(series_id, {}).items()
        }

    def _of(self, measured: Measured) -> list[int]:
        places = self._places.get(measured.columns)
        if places is None:
            places = [self.columns.index(name) for name in measured.columns]
            self._places[measured.columns] = places
        return places


@dataclass(frozen=True, slots=True)
class KnownSeries:
    id: int
    values: Mapping[str, str | None]


def try_lock_alerts(project_id: int) -> bool:
    """Lock a project's alerts until the transaction ends, unless they are locked."""
    return _lock("SELECT pg_try_advisory_xact_lock(%s, %s)", project_id)


def lock_alerts(project_id: int) -> None:
    """Lock a project's alerts until the transaction ends; waits while they are locked."""
    _lock("SELECT pg_advisory_xact_lock(%s, %s) IS NULL", project_id)


def known_series(project_id: int) -> list[KnownSeries]:
    rows = Series.objects.filter(project_id=project_id).order_by("pk")
    return [
        KnownSeries(pk, dict(zip(SERIES, values, strict=True)))
        for pk, *values in rows.values_list("pk", *SERIES)
    ]


def freeze(project_id: int, since: datetime, until: datetime) -> None:
    """Keep the minutes of since <= t < until as they are now; each only once."""
    if since < until:
        parameters = {"project": project_id, "since": since, "until": until}
        change(statement("alert_freeze"), parameters)


def read_counts(
    project_id: int, slot: datetime, columns: Iterable[str], windows: Iterable[int]
) -> SeriesCounts:
    """Count the columns of every series in these windows (seconds) that end with a minute."""
    asked_columns = sorted(set(columns))
    seconds = sorted({int(LATE.total_seconds()), *windows})
    reach = timedelta(seconds=seconds[-1])
    end = slot + MINUTE
    minutes_since = max(end - reach, floor(end - MINUTES_REACH, WIDTHS[Grain.HOUR]))
    parameters: dict[str, Any] = {
        "project": project_id,
        "slot": slot,
        "live_since": end - LATE,
        "minutes_since": minutes_since,
        "hours_since": end - reach,
        "cuts": [end - timedelta(seconds=moment) for moment in reversed(seconds)][1:],
    }
    text = fill(
        "alert_counts",
        # They have marks of their own.
        hours=HOURS if reach > MINUTES_REACH else "",
        asked=", ".join(asked_columns),
        sums=", ".join(f"coalesce(sum({name}), 0)::bigint" for name in asked_columns),
        cut="width_bucket(bucket, %(cuts)s::timestamptz[])",
    )
    cuts: dict[int, dict[int, Numbers]] = defaultdict(dict)
    live: dict[int, dict[int, Numbers]] = defaultdict(dict)
    last = len(seconds) - 1
    for series_id, minute, cut, *numbers in fetch(text, parameters):
        by_cut, place = cuts[series_id], last - cut
        known = by_cut.get(place)
        by_cut[place] = list(map(add, known, numbers)) if known else numbers
        if minute is not None:
            live[series_id][int(minute.timestamp())] = numbers
    return SeriesCounts(asked_columns, seconds, cuts, live)


def read_event_counts(
    project_id: int,
    slot: datetime,
    series: Iterable[KnownSeries],
    columns: Iterable[str],
    windows: Iterable[int],
    terms: Sequence[Term],
    deadline: float,
) -> SeriesCounts:
    """Count as `read_counts` does, by single events that meet the terms; no live minutes.

    Raises EventsUncountableError when the deadline (of the monotonic clock) has passed.
    """
    seconds, end = sorted({int(LATE.total_seconds()), *windows}), slot + MINUTE
    since, *bounds = [end - timedelta(seconds=moment) for moment in reversed(seconds)]
    question = EventsAsked(since, end, bounds, sorted(set(columns)), terms, LATE)
    ids = {tuple(known.values[name] for name in SERIES): known.id for known in series}
    cuts: dict[int, dict[int, Numbers]] = defaultdict(dict)
    for row in count_events(project_id, question, deadline):
        values, cut, numbers = row[: len(SERIES)], row[len(SERIES)], row[len(SERIES) + 1 :]
        if values in ids:
            cuts[ids[values]][len(bounds) - cut] = numbers
    return SeriesCounts(question.columns, seconds, cuts, {})


def _lock(text: str, project_id: int) -> bool:
    return bool(fetch(text, [LOCK_SPACE, project_id % 2**31])[0][0])


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


def count_events(project_id: int, question: EventsAsked, deadline: float) -> list[tuple[Any, ...]]:
    """Return rows of environment, node, provider, model, the part (from 0), and the columns.

    `deadline` is of the monotonic clock. Raises EventsUncountableError.
    """
    values = {
        "project": project_id,
        "since": question.since,
        "until": question.until,
        "bounds": list(question.bounds),
        "known_within": question.known_within,
        **term_params(question.terms),
    }
    with _stopped_at(deadline):
        text = fill(
            "alert_counts_of_events",
            sums=", ".join(f"coalesce(sum({name}), 0)::bigint" for name in question.columns),
            of_events=", ".join(
                f"{MEASURES_OF_EVENTS[name]} AS {name}" for name in question.columns
            ),
            of_outcomes=", ".join(OF_OUTCOMES.get(name, "0") for name in question.columns),
            terms=write_terms(question.terms),
        )
        return fetch(text, values)


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
