"""Counts of failure groups: by hour, or event by event without counts; the latest groups.

Two sources have the same columns (group, time, seen, and where): the hours that the fold keeps,
at any size, and single events for filters beyond rollups.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet

from diagnostics.failures.models import FailureGroup
from diagnostics.queries.series import BASELINE_SPAN
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
from diagnostics.store.sql import fetch, fill, statement
from diagnostics.store.windows import WIDTHS, Grain, Segment, TimeWindow, align, align_to
from failsoft.events import FAILURE_EVENT_KINDS

READ = (
    *("event_id", "occurred_at", "provider", "model", "environment", "prompt_version"),
    *("schema_version", "source", "release", "correlation_id", "reason", "node"),
    *("region", "credential"),
)
FAILED = sorted(FAILURE_EVENT_KINDS)
LONGEST_RUN = timedelta(days=1)
FIRST_STRETCH, MOST_WITH_WORDS = timedelta(hours=1), 1_000
BY_HOUR, ALONE_BY_HOUR = timedelta(days=3), timedelta(days=8)
"""Longer windows are counted by day (UTC), except at their ends; single groups later."""
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
# The latest by its index: one probe per group, never a scan of all rows.
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
    """A query of groups: seen in since <= t < until (widened to hours), under the terms.

    `kinds` are terms on a kind of event or an error type; states and ids of None mean all. With
    `events`, single events are counted under that selection, and the terms are ignored.
    """

    since: datetime
    until: datetime
    terms: Sequence[Term] = ()
    states: Sequence[str] | None = None
    kinds: Sequence[Term] = ()
    ids: Sequence[int] | None = None
    events: Selection | None = None
    with_baseline: bool = False
    """Whether the week before is counted as well, in a query by hour."""
    found: str | None = None
    """The failures that `events` selects as JSON, if they are known."""

    @property
    def begin(self) -> datetime:
        """The start of the counts: hours are counted whole."""
        return self.since if self.events else self._hours.since

    @property
    def end(self) -> datetime:
        return self.until if self.events else self._hours.until

    @property
    def grain(self) -> Grain:
        """The finest unit of time: a day if the window is long."""
        is_alone = self.ids is not None and len(self.ids) == 1
        limit = ALONE_BY_HOUR if is_alone else BY_HOUR
        is_long = not self.events and self.end - self.begin > limit
        return Grain.DAY if is_long else Grain.HOUR

    @property
    def width(self) -> timedelta:
        return WIDTHS[self.grain]

    @property
    def split(self) -> datetime:
        """The end of the baseline: halfway if the week before would need single events."""
        return self.begin + (self.end - self.begin) / 2 if self.events else self.begin

    @property
    def scale(self) -> float:
        """The length of the window in units of its baseline."""
        return 1.0 if self.events else (self.end - self.begin) / BASELINE_SPAN

    @property
    def segments(self) -> Sequence[Segment]:
        window = self._hours
        before = window.before(BASELINE_SPAN).segments_to(Grain.DAY) if self.with_baseline else ()
        return [*window.segments_to(self.grain), *before]

    @property
    def _hours(self) -> TimeWindow:
        return align_to(Grain.HOUR, self.since, self.until)


def read_question(
    selection: Selection, now: datetime, states: Sequence[str] | None = None
) -> tuple[GroupQuestion, str | None]:
    """Return the question of a selection, and a note if its window was shortened."""
    since, until = selection.window(now)
    reads_events = selection.needs_events or any(_is_outcome(term) for term in selection.terms)
    if not reads_events:
        terms = selection.rollup_terms
        kinds = [term for term in selection.terms if term.field == "kind"]
        hours = align(since, until, now, Grain.HOUR)
        return GroupQuestion(hours.since, hours.until, terms, states, kinds), None
    scans = selection.scans_events or not selection.needs_events
    notice = NARROWED if scans and until - since > RAW_SPAN else None
    begin = until - RAW_SPAN if notice else since
    return GroupQuestion(begin, until, (), states, events=selection), notice


def newest_of(
    project_id: int, question: GroupQuestion, most: int = MOST_WITH_WORDS
) -> GroupQuestion:
    """Return a question of single events with those it selects, where these are few.

    What most failures have is not read in all of them, for each part of a page: a question of
    words is of its newest times, in which enough have them.
    """
    if question.events is None:
        return question
    since, span = question.until, FIRST_STRETCH
    groups: list[tuple[str]] = []
    while since > question.since and len(groups) < most:
        part = replace(question, since=max(question.since, since - span), until=since)
        groups += query_groups(project_id, "group_newest", part, most=most - len(groups))
        since, span = part.since, 8 * span
    if len(groups) < most:
        return replace(question, found=f"[{','.join(text for (text,) in groups)}]")
    return replace(question, since=since) if question.events.text.words else question


def query_groups(
    project_id: int,
    name: str,
    question: GroupQuestion,
    marks: Mapping[str, str] | None = None,
    **params: datetime | float | None,
) -> list[tuple[Any, ...]]:
    """Run one of the statements `group_*.sql`; `marks` are its further placeholders."""
    if question.events is None and not question.segments:
        return []
    source, parameters = _source(project_id, question)
    states = "" if question.states is None else OF_STATES
    counted = (
        COUNTED.format(grain=segment.grain, place=index) + states
        for index, segment in enumerate(question.segments)
    )
    text = fill(
        name,
        **(marks or {}),
        seen=source,
        narrowed=write_narrowing(question.terms),
        counted="\nUNION ALL\n".join(counted),
        of_kinds=OF_KINDS,
    )
    kinds, excluded_kinds = _kinds(question.kinds)
    parameters |= {
        "project": project_id,
        "since": question.begin,
        "until": question.end,
        "split": question.split,
        "scale": question.scale,
        "states": list(question.states) if question.states is not None else None,
        "ids": list(question.ids) if question.ids is not None else None,
        "kinds": kinds,
        "not_kinds": excluded_kinds,
        **params,
    }
    for index, segment in enumerate(question.segments):
        parameters[f"since_{index}"] = segment.since
        parameters[f"until_{index}"] = segment.until
    return fetch(text, parameters)


class Sort(StrEnum):
    LATEST = "latest"
    MOST = "most"
    RISING = "rising"


KEYS: Mapping[Sort, tuple[str, str]] = {
    Sort.LATEST: ("kept.last_seen", "timestamptz"),
    Sort.MOST: ("counted.seen", "bigint"),
    Sort.RISING: ("counted.risen", "bigint"),
}
"""The sort key of the statement, and its type."""


def count_groups(
    project_id: int,
    question: GroupQuestion,
    limit: int,
    order: Sort = Sort.LATEST,
    after: datetime | int | None = None,
    last: int | None = None,
) -> dict[int, tuple[int, int]]:
    """Return how often each group was seen, and its rise, by id and in an order.

    `after` and `last` are the sort key and the id of the group before the first.
    """
    key, kind = KEYS[order]
    rows = query_groups(
        project_id,
        "group_list",
        replace(question, with_baseline=question.events is None),
        {"order": key, "type": kind},
        after=after,
        last=last,
        most=limit,
    )
    return {pk: (count, risen) for pk, count, risen in rows}


def latest_groups(
    project_id: int, question: GroupQuestion, limit: int
) -> list[tuple[FailureGroup, int]]:
    """Return the groups with the latest failures and how often each was seen, without its runs."""
    counts = count_groups(project_id, question, limit)
    return [(group, counts[group.pk][0]) for group in groups_in(project_id, counts)]


def groups_in(project_id: int, ids: Iterable[int]) -> list[FailureGroup]:
    """Return the groups with these ids, in their order."""
    groups = FailureGroup.objects.filter(project_id=project_id).in_bulk(list(ids))
    return [groups[pk] for pk in ids if pk in groups]


def states_of(project_id: int, question: GroupQuestion) -> Mapping[str, int]:
    """Return how many groups were seen, by state, regardless of the question's states."""
    if question.events is not None:
        return dict(query_groups(project_id, "group_states", question))
    conditions = (
        IS_SEEN.format(grain=segment.grain, place=index)
        for index, segment in enumerate(question.segments)
    )
    marks = {"is_seen": ", ".join(conditions)}
    return dict(query_groups(project_id, "group_states_by_hour", question, marks))


def _source(project_id: int, question: GroupQuestion) -> tuple[str, dict[str, Any]]:
    if question.events is None:
        terms = write_terms(question.terms, {"series": "series", "version": "version"})
        return fill("group_seen_by_hour", terms=terms), dict(term_params(question.terms))
    if question.found is not None:
        return statement("group_seen_found"), {"found": question.found}
    words, selection = question.events.text.words, question.events.without_words
    events, values = _single_events(project_id, question, selection)
    text = fill("group_seen_by_event", events=events)
    # The details are joined anyway, so words are searched there.
    conditions = write_words(words, "event", "payload")
    parts = [text.replace("<<searched>>", condition) for condition in conditions]
    return "\nUNION ALL\n".join(parts), {**values, **word_params(words)}


def write_condition(project_id: int, question: GroupQuestion) -> tuple[str, dict[str, Any]]:
    """Return `AND ...` for a question's filters on the row `event`, with its parameters."""
    if question.events is None:
        conditions = write_terms(question.terms, {"series": "event", "version": "event"})
        return conditions, dict(term_params(question.terms))
    events, values = _single_events(project_id, question, question.events)
    return EXISTS.replace("<<events>>", events), values


def _single_events(
    project_id: int, question: GroupQuestion, selection: Selection
) -> tuple[str, dict[str, Any]]:
    failures = Event.objects.filter(project_id=project_id, kind__in=FAILED)
    candidates = within(failures, question.since, question.until)
    try:
        days = Days(question.since, question.until)
        matching = narrow_failures(candidates, selection, days).order_by().values(*READ)
        inner, values = matching.query.get_compiler(connection.alias).as_sql()
    except EmptyResultSet:
        return NO_EVENTS, {}
    names = [f"event_{index}" for index in range(len(values))]
    # Django writes %s for each value, and %% for a percent sign.
    text = inner % tuple(f"%({name})s" for name in names)
    return text, dict(zip(names, values, strict=True))


def narrow_failures(
    events: QuerySet[Event], selection: Selection, days: Days = ANY_DAY
) -> QuerySet[Event]:
    """Keep the failures that meet a selection; an outcome is that of their run."""
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
    kinds, excluded = _kinds(terms)
    return (kinds is None or not {*kinds}.isdisjoint(names)) and {*excluded}.isdisjoint(names)


def _is_outcome(term: Term) -> bool:
    return term.field == "outcome"


def _kinds(terms: Sequence[Term]) -> tuple[list[str] | None, list[str]]:
    kinds = [term.value for term in terms if not term.is_negated and term.value]
    excluded = [term.value for term in terms if term.is_negated and term.value]
    return kinds or None, excluded
