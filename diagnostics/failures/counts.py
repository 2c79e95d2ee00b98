"""How often failure groups were seen: by hour, or event by event where nothing is counted.

Two sources give the same columns (group, time, seen, and where it was seen): the hours that
the fold keeps, at any size, and single events for filters that no rollup knows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet

from diagnostics.selection.conditions import (
    ANY_DAY,
    Days,
    narrow,
    term_params,
    within,
    word_params,
    write_narrowing,
    write_terms,
    write_words,
)
from diagnostics.selection.fields import OUTCOMES
from diagnostics.selection.query_language import Query, Term
from diagnostics.selection.selection import NARROWED, RAW_SPAN, Selection
from diagnostics.store.models import Event
from diagnostics.store.sql import fetch, statement
from diagnostics.store.windows import WIDTHS, Grain, Segment, TimeWindow, align, align_to
from failsoft.events import FAILURE_EVENT_KINDS

TABLES = {"series": "series", "version": "version"}
READ = (
    *("event_id", "occurred_at", "provider", "model", "environment", "prompt_version"),
    *("schema_version", "source", "release", "correlation_id", "reason", "node"),
)
FAILED = sorted(FAILURE_EVENT_KINDS)
LONGEST_RUN = timedelta(days=1)
BASELINE_SPAN = timedelta(days=7)
BY_HOUR, ALONE_BY_HOUR = timedelta(days=3), timedelta(days=8)
"""Longer windows are told by the day (UTC), but for their ends; of one group later."""
NO_EVENTS = "SELECT * FROM diagnostics_event WHERE false"
COUNTED = """SELECT group_id, series_id, version_id, bucket, seen
FROM diagnostics_group_{grain}
WHERE project_id = %(project)s AND bucket >= %(since_{place})s AND bucket < %(until_{place})s
    AND (%(ids)s::bigint[] IS NULL OR group_id = ANY(%(ids)s::bigint[]))"""
OF_STATES = """
    AND group_id IN (
        SELECT id FROM diagnostics_failuregroup
        WHERE project_id = %(project)s AND state = ANY(%(states)s::text[])
    )"""
# The latest by its index: one look for each group, never a reading of all rows.
IS_SEEN = """(
    SELECT true FROM diagnostics_group_{grain} AS seen
    WHERE seen.project_id = %(project)s AND seen.group_id = kept.id AND seen.seen > 0
        AND seen.bucket >= %(since_{place})s AND seen.bucket < %(until_{place})s <<narrowed>>
    ORDER BY seen.bucket DESC LIMIT 1
)"""
OF_KINDS = """(%(kinds)s::text[] IS NULL
        OR kept.kind = ANY(%(kinds)s::text[])
        OR kept.error_type = ANY(%(kinds)s::text[]))
    AND NOT kept.kind = ANY(%(not_kinds)s::text[])
    AND NOT kept.error_type = ANY(%(not_kinds)s::text[])"""
EXISTS = """AND EXISTS (
    SELECT FROM (<<events>>) AS wanted
    WHERE wanted.event_id = event.event_id AND wanted.occurred_at = event.occurred_at
)"""


@dataclass(frozen=True, slots=True)
class GroupQuestion:
    """Which groups: seen in since <= t < until (widened to hours), under the terms.

    `kinds` are terms on a kind of event or a type of error; states and ids None: all. With
    `events`, single events are counted under that selection, and the terms are passed over.
    """

    since: datetime
    until: datetime
    terms: Sequence[Term] = ()
    states: Sequence[str] | None = None
    kinds: Sequence[Term] = ()
    ids: Sequence[int] | None = None
    events: Selection | None = None
    with_baseline: bool = False
    """Whether the week before is counted too, where hours are."""

    @property
    def begin(self) -> datetime:
        """Where counting begins: hours are counted whole."""
        return self.since if self.events else self._hours.since

    @property
    def end(self) -> datetime:
        """Where counting ends."""
        return self.until if self.events else self._hours.until

    @property
    def grain(self) -> Grain:
        """The least stretch of time that is told apart: a day, where the window is long."""
        is_alone = self.ids is not None and len(self.ids) == 1
        most = ALONE_BY_HOUR if is_alone else BY_HOUR
        is_long = not self.events and self.end - self.begin > most
        return Grain.DAY if is_long else Grain.HOUR

    @property
    def width(self) -> timedelta:
        """How long that is."""
        return WIDTHS[self.grain]

    @property
    def split(self) -> datetime:
        """Where the baseline ends: halfway, where the week before would be read by the event."""
        return self.begin + (self.end - self.begin) / 2 if self.events else self.begin

    @property
    def scale(self) -> float:
        """How long the window is, in lengths of its baseline."""
        return 1.0 if self.events else (self.end - self.begin) / BASELINE_SPAN

    @property
    def segments(self) -> Sequence[Segment]:
        """The hours and days that make it up, and those of its baseline."""
        window = self._hours
        before = window.before(BASELINE_SPAN).segments_to(Grain.DAY) if self.with_baseline else ()
        return [*window.segments_to(self.grain), *before]

    @property
    def _hours(self) -> TimeWindow:
        return align_to(Grain.HOUR, self.since, self.until)


def read_question(
    selection: Selection, now: datetime, states: Sequence[str] | None = None
) -> tuple[GroupQuestion, str | None]:
    """Turn a selection into a question, and what to say when its window was made shorter."""
    since, until = selection.window(now)
    reads_events = selection.needs_events or any(_is_outcome(t) for t in selection.terms)
    if not reads_events:
        terms = selection.rollup_terms
        kinds = [term for term in selection.terms if term.field == "kind"]
        hours = align(since, until, now, Grain.HOUR)
        return GroupQuestion(hours.since, hours.until, terms, states, kinds), None
    scans = selection.scans_events or not selection.needs_events
    notice = NARROWED if scans and until - since > RAW_SPAN else None
    begin = until - RAW_SPAN if notice else since
    return GroupQuestion(begin, until, (), states, events=selection), notice


def ask(
    project_id: int,
    name: str,
    asked: GroupQuestion,
    written: Mapping[str, str] | None = None,
    **more: datetime | float | None,
) -> list[tuple[Any, ...]]:
    """Ask one of the statements `group_*.sql`; `written` fills in its other marks."""
    if asked.events is None and not asked.segments:
        return []
    source, parameters = _source(project_id, asked)
    text = statement(name)
    parts = {
        "seen": source,
        "narrowed": write_narrowing(asked.terms),
        "counted": _counted(asked),
        "of_kinds": OF_KINDS,
    }
    for mark, part in {**(written or {}), **parts}.items():
        text = text.replace(f"<<{mark}>>", part)
    wanted, refused = _kinds(asked.kinds)
    parameters |= {
        "project": project_id,
        "since": asked.begin,
        "until": asked.end,
        "split": asked.split,
        "scale": asked.scale,
        "states": list(asked.states) if asked.states is not None else None,
        "ids": list(asked.ids) if asked.ids is not None else None,
        "kinds": wanted,
        "not_kinds": refused,
        **more,
    }
    for place, segment in enumerate(asked.segments):
        parameters[f"since_{place}"] = segment.since
        parameters[f"until_{place}"] = segment.until
    return fetch(text, parameters)


def _counted(asked: GroupQuestion) -> str:
    states = "" if asked.states is None else OF_STATES
    return "\nUNION ALL\n".join(
        COUNTED.format(grain=segment.grain, place=place) + states
        for place, segment in enumerate(asked.segments)
    )


def states_of(project_id: int, asked: GroupQuestion) -> Mapping[str, int]:
    """Count the groups seen by state, whatever states are asked for."""
    if asked.events is not None:
        return dict(ask(project_id, "group_states", asked))
    looks = (
        IS_SEEN.format(grain=segment.grain, place=place)
        for place, segment in enumerate(asked.segments)
    )
    written = {"is_seen": ", ".join(looks)}
    return dict(ask(project_id, "group_states_by_hour", asked, written))


def _source(project_id: int, asked: GroupQuestion) -> tuple[str, dict[str, Any]]:
    if asked.events is None:
        text = statement("group_seen_by_hour")
        terms = write_terms(asked.terms, TABLES)
        return text.replace("<<terms>>", terms), dict(term_params(asked.terms))
    words, selection = asked.events.text.words, asked.events.without_words
    events, values = _single_events(project_id, asked, selection)
    text = statement("group_seen_by_event").replace("<<events>>", events)
    # The details are joined anyway: asked there, words cost no second look at them.
    found = write_words(words, "event", "payload")
    return text.replace("<<searched>>", found), {**values, **word_params(words)}


def write_condition(project_id: int, asked: GroupQuestion) -> tuple[str, dict[str, Any]]:
    """Write `AND ...` for a question's filters on the row `event`, with its parameters."""
    if asked.events is None:
        written = write_terms(asked.terms, {"series": "event", "version": "event"})
        return written, dict(term_params(asked.terms))
    events, values = _single_events(project_id, asked, asked.events)
    return EXISTS.replace("<<events>>", events), values


def _single_events(
    project_id: int, asked: GroupQuestion, selection: Selection
) -> tuple[str, dict[str, Any]]:
    """Write the query of the events that meet a selection, with its parameters."""
    failures = Event.objects.filter(project_id=project_id, kind__in=FAILED)
    mine = within(failures, asked.since, asked.until)
    try:
        days = Days(asked.since, asked.until)
        read = narrow_failures(mine, selection, days).order_by().values(*READ)
        inner, values = read.query.get_compiler(connection.alias).as_sql()
    except EmptyResultSet:
        return NO_EVENTS, {}
    names = [f"event_{place}" for place in range(len(values))]
    # Django writes %s for each value, and %% for a sign of its own.
    named = inner % tuple(f"%({name})s" for name in names)
    return named, dict(zip(names, values, strict=True))


def narrow_failures(
    events: QuerySet[Event], selection: Selection, days: Days = ANY_DAY
) -> QuerySet[Event]:
    """Keep the failures that meet a selection: an outcome is that of the run they hit."""
    for term in selection.terms:
        if _is_outcome(term):
            ends = Exists(_ends(term))
            events = events.filter(~ends if term.is_negated else ends)
    others = {k: v for k, v in selection.filters.items() if k != "outcome"}
    text = Query(
        tuple(term for term in selection.text.terms if not _is_outcome(term)), selection.text.words
    )
    return narrow(events, replace(selection, filters=others, text=text), days)


def _ends(term: Term) -> QuerySet[Event]:
    names = ("project_id", "correlation_id", "cycle", "node")
    same = {name: OuterRef(name) for name in names}
    return Event.objects.filter(
        occurred_at__gte=OuterRef("occurred_at"),
        occurred_at__lt=OuterRef("occurred_at") + LONGEST_RUN,
        **OUTCOMES.get(term.value or "", {"pk__in": ()}),
        **same,
    )


def is_of_kinds(terms: Sequence[Term], *names: str) -> bool:
    """Whether what has these names as its kinds meets terms on a kind."""
    wanted, refused = _kinds(terms)
    return (wanted is None or not {*wanted}.isdisjoint(names)) and {*refused}.isdisjoint(names)


def _is_outcome(term: Term) -> bool:
    return term.field == "outcome"


def _kinds(terms: Sequence[Term]) -> tuple[list[str] | None, list[str]]:
    wanted = [term.value for term in terms if not term.is_negated and term.value]
    refused = [term.value for term in terms if term.is_negated and term.value]
    return wanted or None, refused
