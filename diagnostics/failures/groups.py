"""Queries of failure groups: lists, models, trends, samples.

Groups are created by the fold, so failures of the last five seconds may be missing.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from diagnostics.analysis.series import ModelKey
from diagnostics.failures.counts import (
    LONGEST_RUN,
    GroupQuestion,
    Sort,
    count_groups,
    groups_in,
    narrow_failures,
    query_groups,
    write_condition,
)
from diagnostics.failures.models import FailureGroup, GroupChange
from diagnostics.queries.sums import Slots
from diagnostics.rest import cursors
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event, EventPayload, events_behind
from diagnostics.store.sql import fetch, fill
from diagnostics.store.windows import Grain, floor

TREND_SLOTS = 24
# The failures of a group that are sampled for its runs: two probes each.
RUN_SAMPLES = 100
LISTED_SAMPLES = 200
# New or regressed groups in a window, before the terms are applied.
MOST_FRESH = 200
Sample = tuple[Event, EventPayload]


@dataclass(frozen=True, slots=True)
class FreshGroup:
    """A failure group that is new in a window, or regressed."""

    group: FailureGroup
    seen: int
    models: Mapping[ModelKey, int]
    is_regressed: bool


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A failure group in a window."""

    group: FailureGroup
    seen: int
    """Failures in the window, under the terms."""
    risen: int
    """Failures beyond the baseline, the 7 days before scaled to the window.

    With single events: those in the second half of the window less those in the first.
    """
    models: Mapping[ModelKey, int]
    """Failures by (provider, model), most first."""
    trend: Sequence[int]
    """Failures in equal slots of the window, oldest first."""
    runs: int
    """The runs of its latest 100 failures in the window under the terms."""
    repaired: int
    """Of `runs`, those that recovered."""

    @property
    def repaired_share(self) -> float | None:
        return self.repaired / self.runs if self.runs else None


def groups_of(
    project_id: int,
    question: GroupQuestion,
    limit: int,
    cursor: str | None = None,
    order: Sort = Sort.LATEST,
) -> tuple[list[GroupRow], str | None]:
    """Return one page of groups, by default the latest failure first, and the next cursor.

    Raises BadCursorError.
    """
    after: tuple[datetime | int, int] | tuple[()] = ()
    if cursor:
        after = (
            cursors.read_cursor(cursor, int)
            if order is Sort.LATEST
            else cursors.read_count_cursor(cursor)
        )
    counts = count_groups(project_id, question, limit + 1, order, *after)
    page = groups_in(project_id, counts)
    rows = _describe(project_id, question, page[:limit], counts)
    if not page[limit:]:
        return rows, None
    last = rows[-1]
    if order is Sort.LATEST:
        return rows, cursors.write_cursor(last.group.last_seen, last.group.pk)
    count = last.seen if order is Sort.MOST else last.risen
    return rows, cursors.write_count_cursor(count, last.group.pk)


def group_row(project_id: int, group_id: int, question: GroupQuestion) -> GroupRow | None:
    """Return one group in a window, even if not seen in it; None if it does not exist."""
    group = FailureGroup.objects.filter(project_id=project_id, pk=group_id).first()
    if group is None:
        return None
    alone = replace(question, states=None, kinds=(), ids=[group_id])
    counts = count_groups(project_id, alone, 1)
    return _describe(project_id, alone, [group], counts)[0]


def newest_groups(
    project_id: int, since: datetime, until: datetime, terms: Sequence[Term] = ()
) -> list[FreshGroup]:
    """Return the groups that began or regressed in since <= t < until, latest failure first.

    Resolved and muted groups are omitted. Three statements for any number of groups.
    """
    came_back = GroupChange.objects.filter(
        group_id=OuterRef("pk"), kind=GroupChange.Kind.REGRESSED, at__gte=since, at__lt=until
    )
    known = FailureGroup.objects.filter(project_id=project_id).exclude(
        state__in=[FailureGroup.State.RESOLVED, FailureGroup.State.MUTED]
    )
    candidates = known.annotate(came_back=Exists(came_back)).filter(
        Q(first_seen__gte=since, first_seen__lt=until) | Q(came_back=True)
    )
    groups = {group.pk: group for group in candidates.order_by("-last_seen", "-pk")[:MOST_FRESH]}
    question = GroupQuestion(since, until, terms, ids=list(groups))
    counts = count_groups(project_id, question, MOST_FRESH)
    models, _ = shapes_of(project_id, question, list(counts), whole_slots(question, 1))
    return [
        FreshGroup(group := groups[pk], seen, _sort_models(models[pk]), group.came_back)
        for pk, (seen, _) in counts.items()
    ]


def neighbours_of(
    project_id: int, group_id: int, question: GroupQuestion
) -> tuple[int | None, int | None]:
    """Return the groups before and after one in the list, rising first, of its first 200."""
    ids = list(count_groups(project_id, question, MOST_FRESH, Sort.RISING))
    if group_id not in ids:
        return None, None
    index = ids.index(group_id)
    after = ids[index + 1 : index + 2]
    return ids[index - 1] if index else None, after[0] if after else None


def samples_of(
    group: FailureGroup,
    since: datetime,
    until: datetime,
    limit: int,
    cursor: str | None = None,
    selection: Selection | None = None,
) -> tuple[list[Sample], str | None]:
    """Return one page of a group's failures with kept details, latest first.

    With a selection, those that meet it. Raises BadCursorError.
    """
    payloads = EventPayload.objects.filter(
        project_id=group.project_id,
        fingerprint=group.fingerprint,
        occurred_at__gte=since,
        occurred_at__lt=until,
    ).order_by("-occurred_at", "-event_id")
    if selection is not None and (selection.terms or selection.text.words):
        same_event = {name: OuterRef(name) for name in ("project_id", "event_id", "occurred_at")}
        payloads = payloads.filter(
            Exists(narrow_failures(Event.objects.filter(**same_event), selection))
        )
    page, after = cursors.EVENT_ORDER.page(payloads, limit, cursor)
    events = events_behind(page)
    return [
        (events[payload.event_id], payload) for payload in page if payload.event_id in events
    ], after


def _describe(
    project_id: int,
    question: GroupQuestion,
    groups: Sequence[FailureGroup],
    counts: Mapping[int, tuple[int, int]],
) -> list[GroupRow]:
    ids = [group.pk for group in groups]
    models, trends = shapes_of(project_id, question, ids, trend_slots(question))
    runs = _runs(project_id, question, ids)
    return [
        GroupRow(
            group,
            *counts.get(group.pk, (0, 0)),
            _sort_models(models[group.pk]),
            trends[group.pk],
            *runs.get(group.pk, (0, 0)),
        )
        for group in groups
    ]


def _sort_models(counter: Counter[ModelKey]) -> dict[ModelKey, int]:
    return dict(
        sorted(counter.items(), key=lambda item: (-item[1], [name or "" for name in item[0]]))
    )


def shapes_of(
    project_id: int, question: GroupQuestion, ids: Sequence[int], slots: Slots
) -> tuple[Mapping[int, Counter[ModelKey]], Mapping[int, list[int]]]:
    rows = query_groups(
        project_id,
        "group_shape" if question.events else "group_shape_by_hour",
        # Groups by their ids: a join for their states would look at every row again.
        replace(question, ids=list(ids), states=None),
        origin=slots.since,
        seconds=slots.width.total_seconds(),
        last_slot=slots.count - 1,
    )
    models: dict[int, Counter[ModelKey]] = defaultdict(Counter)
    trends: dict[int, list[int]] = defaultdict(lambda: [0] * slots.count)
    for pk, provider, model, slot, count in rows:
        # Hours come twice: by model without a slot, by slot without a model.
        if question.events or slot is None:
            models[pk][provider, model] += count
        if slot is not None:
            trends[pk][slot] += count
    return models, trends


def trend_slots(question: GroupQuestion) -> Slots:
    """Return the slots of a group's trend: 24, or days if the window is long."""
    if question.grain is Grain.DAY:
        return whole_slots(question, TREND_SLOTS)
    return Slots(question.begin, (question.end - question.begin) / TREND_SLOTS, TREND_SLOTS)


def whole_slots(question: GroupQuestion, most: int) -> Slots:
    """Divide the window into slots of whole hours, or of days if it is long."""
    width = question.width
    origin = floor(question.begin, width)
    count = max(-(-(question.end - origin) // width), 1)
    per_slot = -(-count // most)
    return Slots(origin, per_slot * width, -(-count // per_slot))


def _runs(
    project_id: int, question: GroupQuestion, ids: Sequence[int]
) -> Mapping[int, tuple[int, int]]:
    condition, values = write_condition(project_id, question)
    # Samples are details, kept for fewer days than events: of others nothing is even planned.
    kept = timedelta(days=settings.FAILSOFT_KEEP_PAYLOAD_DAYS + 1)
    parameters: dict[str, Any] = {
        **values,
        "project": project_id,
        "ids": list(ids),
        "since": max(question.since, question.until - kept),
        "until": question.until,
        "latest": question.until + LONGEST_RUN,
        "most": RUN_SAMPLES,
    }
    rows = fetch(fill("group_runs", condition=condition), parameters)
    return {pk: (runs, repaired) for pk, runs, repaired in rows}
