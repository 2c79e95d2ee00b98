"""Reads of failure groups: lists, where they come from, how they went on, samples.

Groups are made by the fold, so what failed a second or two ago is not in them yet.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Exists, OuterRef, Q

from diagnostics.failures.counts import (
    LONGEST_RUN,
    GroupQuestion,
    ask,
    narrow_failures,
    write_condition,
)
from diagnostics.failures.models import FailureGroup, GroupChange
from diagnostics.queries.events import events_behind, page_of
from diagnostics.queries.matrix import ModelKey
from diagnostics.queries.sums import Slots
from diagnostics.rest.cursors import (
    read_count_cursor,
    read_cursor,
    write_count_cursor,
    write_cursor,
)
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event, EventPayload
from diagnostics.store.sql import fetch, statement
from diagnostics.store.windows import WIDTHS, Grain, floor

TREND_SLOTS = 24
MOST_DAYS = 24
# Failures of a group that are looked at to tell runs hit and repaired: two looks each.
RUN_SAMPLES = 100
LISTED_SAMPLES = 200
# Groups that began or came back in a window, of which those under the terms are told.
MOST_FRESH = 200
Sample = tuple[Event, EventPayload]


@dataclass(frozen=True, slots=True)
class FreshGroup:
    """A failure group in a window, also one that began or came back in it."""

    group: FailureGroup
    seen: int
    """Failures in the window, under the terms."""
    risen: int
    """Failures beyond the baseline, the 7 days before scaled to the window.

    Where single events are read: in the second half of the window less those in the first.
    """
    models: Mapping[ModelKey, int]
    """Failures by (provider, model), most first."""
    trend: Sequence[int]
    """Failures in equal stretches of the window, oldest first."""

    @property
    def is_regressed(self) -> bool:
        """Whether it came back in the window after it was resolved, of `newest_groups`."""
        return bool(getattr(self.group, "came_back", False))


@dataclass(frozen=True, slots=True)
class GroupRow(FreshGroup):
    """A failure group in a window, with the runs that it hit."""

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
    RISING = "rising"


KEYS: Mapping[Sort, tuple[str, str]] = {
    Sort.LATEST: ("kept.last_seen", "timestamptz"),
    Sort.MOST: ("counted.seen", "bigint"),
    Sort.RISING: ("counted.risen", "bigint"),
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


def newest_groups(
    project_id: int, since: datetime, until: datetime, most: int = 5, terms: Sequence[Term] = ()
) -> list[FreshGroup]:
    """Return what began or came back in since <= t < until, latest failure first.

    Resolved and muted groups are passed over. Three statements, whatever is found; the page
    of a group is the address `failure` with `group.pk`.
    """
    came_back = GroupChange.objects.filter(
        group_id=OuterRef("pk"), kind=GroupChange.Kind.REGRESSED, at__gte=since, at__lt=until
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
    models, trends = shapes_of(project_id, asked, list(seen), trend_slots(asked))
    return [
        FreshGroup(groups[pk], *counts, _busiest_first(models[pk]), trends[pk])
        for pk, counts in seen.items()
    ]


def neighbours_of(
    project_id: int, group_id: int, asked: GroupQuestion
) -> tuple[int | None, int | None]:
    """Return the groups before and after one in the list, rising first, of its first 200."""
    found = list(_list(project_id, asked, MOST_FRESH, None, Sort.RISING))
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
        mine = {name: OuterRef(name) for name in ("project_id", "event_id", "occurred_at")}
        payloads = payloads.filter(Exists(narrow_failures(Event.objects.filter(**mine), selection)))
    page, after = page_of(payloads, limit, cursor)
    events = events_behind(page)
    return [(events[p.event_id], p) for p in page if p.event_id in events], after


def _list(
    project_id: int, asked: GroupQuestion, most: int, cursor: str | None, order: Sort = Sort.LATEST
) -> dict[int, tuple[int, int]]:
    """Return how often each group of a page was seen, and how it rose, by id, in order."""
    after: datetime | int | None = None
    last: int | None = None
    if cursor:
        is_time = order is Sort.LATEST
        after, last = read_cursor(cursor, int) if is_time else read_count_cursor(cursor)
    key, kind = KEYS[order]
    rows = ask(
        project_id,
        "group_list",
        replace(asked, with_baseline=asked.events is None),
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
    models, trends = shapes_of(project_id, asked, ids, trend_slots(asked))
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


def _busiest_first(seen: Counter[ModelKey]) -> dict[ModelKey, int]:
    """Order models by their failures; by name where they have as many."""
    return dict(sorted(seen.items(), key=lambda item: (-item[1], [p or "" for p in item[0]])))


def shapes_of(
    project_id: int, asked: GroupQuestion, ids: Sequence[int], slots: Slots
) -> tuple[Mapping[int, Counter[ModelKey]], Mapping[int, list[int]]]:
    """Count the failures of groups by model, and by slot of time."""
    rows = ask(
        project_id,
        "group_shape" if asked.events else "group_shape_by_hour",
        replace(asked, ids=list(ids)),
        origin=slots.since,
        seconds=slots.width.total_seconds(),
        last_slot=slots.count - 1,
    )
    models: dict[int, Counter[ModelKey]] = defaultdict(Counter)
    trends: dict[int, list[int]] = defaultdict(lambda: [0] * slots.count)
    for pk, provider, model, slot, seen in rows:
        # Hours are told twice: by model without a slot, by slot without a model.
        if asked.events or slot is None:
            models[pk][provider, model] += seen
        if slot is not None:
            trends[pk][slot] += seen
    return models, trends


def trend_slots(asked: GroupQuestion) -> Slots:
    """Return where the curve of a group begins, and its slots: 24, or days where it is long."""
    day = WIDTHS[Grain.DAY]
    if asked.width < day:
        return Slots(asked.begin, (asked.end - asked.begin) / TREND_SLOTS, TREND_SLOTS)
    origin = floor(asked.begin, day)
    days = -(-(asked.end - origin) // day)
    each = -(-days // MOST_DAYS)
    return Slots(origin, each * day, -(-days // each))


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
    return {pk: (runs, repaired) for pk, runs, repaired in fetch(text, parameters)}


def _write_cursor(last: GroupRow, order: Sort) -> str:
    if order is Sort.LATEST:
        return write_cursor(last.group.last_seen, last.group.pk)
    count = last.seen if order is Sort.MOST else last.risen
    return write_count_cursor(count, last.group.pk)
