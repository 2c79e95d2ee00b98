"""Reads of failure groups: lists, where they come from, how they went on, samples.

Groups are made by the fold, so what failed a second or two ago is not in them yet.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from diagnostics.failures.counts import (
    LONGEST_RUN,
    GroupQuestion,
    ask,
    narrow_failures,
    write_condition,
)
from diagnostics.failures.models import FailureGroup, GroupChange
from diagnostics.rest.cursors import (
    read_count_cursor,
    read_cursor,
    write_count_cursor,
    write_cursor,
)
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event, EventPayload
from diagnostics.store.sql import statement
from diagnostics.store.windows import WIDTHS, Grain, floor

TREND_SLOTS = 24
MOST_DAYS = 24
# Failures of a group that are looked at to tell runs hit and repaired: two looks each.
RUN_SAMPLES = 100
LISTED_SAMPLES = 200
# Groups that began or came back in a window, of which those under the terms are told.
MOST_FRESH = 200
MODEL = tuple[str | None, str | None]
Sample = tuple[Event, EventPayload]


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A failure group in a window."""

    group: FailureGroup
    seen: int
    """Failures in the window, under the terms."""
    risen: int
    """Failures in the second half of the window less those in the first."""
    models: Mapping[MODEL, int]
    """Failures by (provider, model), most first."""
    trend: Sequence[int]
    """Failures in equal stretches of the window, oldest first."""
    runs: int
    """Runs hit by those of its latest 100 failures in the window that meet the terms."""
    repaired: int
    """Of `runs`, those that ended well all the same."""

    @property
    def repaired_share(self) -> float | None:
        """Share of the runs hit that ended well all the same."""
        return self.repaired / self.runs if self.runs else None


class Sort(StrEnum):
    """What a list of groups begins with."""

    LATEST = "latest"
    MOST = "most"
    WORST_TREND = "trend"


KEYS: Mapping[Sort, tuple[str, str]] = {
    Sort.LATEST: ("kept.last_seen", "timestamptz"),
    Sort.MOST: ("counted.seen", "bigint"),
    Sort.WORST_TREND: ("counted.risen", "bigint"),
}
"""By what the statement orders, and its type."""


def groups_of(
    project_id: int,
    asked: GroupQuestion,
    limit: int,
    cursor: str | None = None,
    order: Sort = Sort.LATEST,
) -> tuple[list[GroupRow], str | None]:
    """Return one page of groups, latest failure first unless told, and the next's cursor.

    Raises BadCursorError.
    """
    found = _list(project_id, asked, limit + 1, cursor, order)
    groups = FailureGroup.objects.filter(project_id=project_id).in_bulk(list(found))
    page = [groups[pk] for pk in found if pk in groups]
    rest = page[limit:]
    rows = _describe(project_id, asked, page[:limit], found)
    if not rest:
        return rows, None
    return rows, _write_cursor(rows[-1], order)


def group_row(project_id: int, group_id: int, asked: GroupQuestion) -> GroupRow | None:
    """Return one group in a window, also when it was not seen in it; None: there is none."""
    group = FailureGroup.objects.filter(project_id=project_id, pk=group_id).first()
    if group is None:
        return None
    alone = replace(asked, states=None, kinds=(), ids=[group_id])
    found = _list(project_id, alone, 1, None)
    return _describe(project_id, alone, [group], found)[0]


@dataclass(frozen=True, slots=True)
class FreshGroup:
    """A group that was first seen, or came back after it was resolved, in a window."""

    group: FailureGroup
    is_regressed: bool
    seen: int
    """Failures in the window, under the terms."""
    models: Mapping[MODEL, int]
    """Failures by (provider, model), most first."""
    trend: Sequence[int]
    """Failures in equal stretches of the window, oldest first."""


def newest_groups(
    project_id: int,
    since: datetime,
    until: datetime,
    most: int = 5,
    terms: Sequence[Term] = (),
) -> list[FreshGroup]:
    """Return what began or came back in since <= t < until, latest failure first.

    Resolved and muted groups are passed over. Three statements, whatever is found; the page
    of a group is the address `failure` with `group.pk`.
    """
    came_back = GroupChange.objects.filter(
        group_id=OuterRef("pk"),
        kind=GroupChange.Kind.REGRESSED,
        at__gte=since,
        at__lt=until,
    )
    known = FailureGroup.objects.filter(project_id=project_id).exclude(
        state__in=[FailureGroup.State.RESOLVED, FailureGroup.State.MUTED]
    )
    fresh = known.annotate(came_back=Exists(came_back)).filter(
        Q(first_seen__gte=since, first_seen__lt=until) | Q(came_back=True)
    )
    groups = {one.pk: one for one in fresh.order_by("-last_seen", "-pk")[:MOST_FRESH]}
    asked = GroupQuestion(since, until, terms, ids=list(groups))
    seen = _list(project_id, asked, most, None)
    models, trends = _shapes(project_id, asked, list(seen))
    return [
        FreshGroup(
            groups[pk],
            groups[pk].came_back,
            times,
            _busiest_first(models[pk]),
            trends[pk],
        )
        for pk, (times, _) in seen.items()
    ]


def neighbours_of(
    project_id: int, group_id: int, asked: GroupQuestion
) -> tuple[int | None, int | None]:
    """Return the groups before and after one in the list, latest first, of its first 200."""
    found = list(_list(project_id, asked, MOST_FRESH, None))
    if group_id not in found:
        return None, None
    place = found.index(group_id)
    after = found[place + 1 : place + 2]
    return found[place - 1] if place else None, after[0] if after else None


def samples_of(
    group: FailureGroup,
    since: datetime,
    until: datetime,
    limit: int,
    cursor: str | None = None,
    selection: Selection | None = None,
) -> tuple[list[Sample], str | None]:
    """Return one page of a group's failures, latest first, while their details are kept.

    With a selection, those that meet it. Raises BadCursorError.
    """
    payloads = EventPayload.objects.filter(
        project_id=group.project_id,
        fingerprint=group.fingerprint,
        occurred_at__gte=since,
        occurred_at__lt=until,
    ).order_by("-occurred_at", "-event_id")
    if selection is not None and (selection.terms or selection.text.words):
        payloads = payloads.filter(Exists(_same_events(group.project_id, selection)))
    if cursor:
        at, key = read_cursor(cursor, UUID)
        payloads = payloads.filter(
            Q(occurred_at__lt=at) | Q(occurred_at=at, event_id__lt=key),
            occurred_at__lte=at,
        )
    found = list(payloads[: limit + 1])
    events = _events_of(group.project_id, found[:limit])
    page = [(events[p.event_id], p) for p in found[:limit] if p.event_id in events]
    if len(found) <= limit:
        return page, None
    last = found[limit - 1]
    return page, write_cursor(last.occurred_at, last.event_id)


def _same_events(project_id: int, selection: Selection) -> QuerySet[Event]:
    mine = {name: OuterRef(name) for name in ("event_id", "occurred_at")}
    events = Event.objects.filter(project_id=project_id, **mine)
    return narrow_failures(events, selection)


def _list(
    project_id: int,
    asked: GroupQuestion,
    most: int,
    cursor: str | None,
    order: Sort = Sort.LATEST,
) -> dict[int, tuple[int, int]]:
    """Return how often each group of a page was seen, and how it rose, by id, in order."""
    after, last = _read_group_cursor(cursor, order) if cursor else (None, None)
    key, kind = KEYS[order]
    rows = ask(
        project_id,
        "group_list",
        asked,
        {"order": key, "type": kind},
        after=after,
        last=last,
        most=most,
    )
    return {pk: (seen, risen) for pk, seen, risen in rows}


def _describe(
    project_id: int,
    asked: GroupQuestion,
    groups: Sequence[FailureGroup],
    seen: Mapping[int, tuple[int, int]],
) -> list[GroupRow]:
    ids = [group.pk for group in groups]
    models, trends = _shapes(project_id, asked, ids)
    runs = _runs(project_id, asked, ids)
    return [
        GroupRow(
            group,
            *seen.get(group.pk, (0, 0)),
            _busiest_first(models[group.pk]),
            trends[group.pk],
            *runs.get(group.pk, (0, 0)),
        )
        for group in groups
    ]


def _busiest_first(seen: Counter[MODEL]) -> dict[MODEL, int]:
    """Order models by their failures; by name where they have as many."""

    def order(item: tuple[MODEL, int]) -> tuple[int, list[str]]:
        model, count = item
        return -count, [part or "" for part in model]

    return dict(sorted(seen.items(), key=order))


def _shapes(
    project_id: int, asked: GroupQuestion, ids: Sequence[int]
) -> tuple[Mapping[int, Counter[MODEL]], Mapping[int, list[int]]]:
    origin, width, count = trend_slots(asked)
    rows = ask(
        project_id,
        "group_shape" if asked.events else "group_shape_by_hour",
        replace(asked, ids=list(ids)),
        origin=origin,
        seconds=width.total_seconds(),
        last_slot=count - 1,
    )
    models: dict[int, Counter[MODEL]] = defaultdict(Counter)
    trends: dict[int, list[int]] = defaultdict(lambda: [0] * count)
    for pk, provider, model, slot, seen in rows:
        # Hours are told twice: by model without a slot, by slot without a model.
        if asked.events or slot is None:
            models[pk][provider, model] += seen
        if slot is not None:
            trends[pk][slot] += seen
    return models, trends


def trend_slots(asked: GroupQuestion) -> tuple[datetime, timedelta, int]:
    """Return where the curve of a group begins, and its slots: 24, or days where it is long."""
    day = WIDTHS[Grain.DAY]
    if asked.width < day:
        return asked.begin, (asked.end - asked.begin) / TREND_SLOTS, TREND_SLOTS
    origin = floor(asked.begin, day)
    days = -(-(asked.end - origin) // day)
    each = -(-days // MOST_DAYS)
    return origin, each * day, -(-days // each)


def _runs(
    project_id: int, asked: GroupQuestion, ids: Sequence[int]
) -> Mapping[int, tuple[int, int]]:
    condition, values = write_condition(project_id, asked)
    parameters: dict[str, Any] = {
        **values,
        "project": project_id,
        "ids": list(ids),
        "since": asked.since,
        "until": asked.until,
        "latest": asked.until + LONGEST_RUN,
        "most": RUN_SAMPLES,
    }
    text = statement("group_runs").replace("<<condition>>", condition)
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        return {pk: (runs, repaired) for pk, runs, repaired in cursor.fetchall()}


def _events_of(project_id: int, payloads: Sequence[EventPayload]) -> Mapping[UUID, Event]:
    if not payloads:
        return {}
    times = [payload.occurred_at for payload in payloads]
    found = Event.objects.filter(
        project_id=project_id,
        event_id__in=[payload.event_id for payload in payloads],
        occurred_at__range=(min(times), max(times)),
    )
    return {event.event_id: event for event in found}


def _write_cursor(last: GroupRow, order: Sort) -> str:
    if order is Sort.LATEST:
        return write_cursor(last.group.last_seen, last.group.pk)
    count = last.seen if order is Sort.MOST else last.risen
    return write_count_cursor(count, last.group.pk)


def _read_group_cursor(cursor: str, order: Sort) -> tuple[datetime | int, int]:
    if order is Sort.LATEST:
        return read_cursor(cursor, int)
    return read_count_cursor(cursor)
