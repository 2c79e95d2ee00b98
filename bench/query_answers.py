"""What the console and the API ask of a project: each answer as one function."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from bench.query_costs import Answer
from diagnostics.alerting.statuses import verdict_within
from diagnostics.failures.counts import GroupQuestion
from diagnostics.failures.groups import groups_of
from diagnostics.queries.events import matching, scan
from diagnostics.queries.series import counts_by_series, trends
from diagnostics.rest.cursors import EVENT_ORDER
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import Selection, read_selection
from diagnostics.store.models import Event, events_of
from diagnostics.store.windows import Grain, align

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
PAGE = 25


def answers(project: int, now: datetime) -> Mapping[str, Answer]:
    """Give every answer by its name; those of single events stay within 7 days."""
    return {
        "index probe": lambda: Event.objects.filter(
            project_id=project, occurred_at__gte=now
        ).first(),
        **_boards(project, now),
        **_lists(project, now),
        "verdict of 24 hours": lambda: verdict_within(project, Selection(), now),
    }


def _boards(project: int, now: datetime) -> Mapping[str, Answer]:
    day, month = now - DAY, now - 30 * DAY
    prompt = [Term("prompt_version", "v4")]
    return {
        "board of 1 hour": lambda: counts_by_series(project, align(now - HOUR, now, now)),
        "board of 24 hours": lambda: counts_by_series(project, align(day, now, now)),
        "board of 7 days": lambda: counts_by_series(project, align(now - 7 * DAY, now, now)),
        "board of 30 days": lambda: counts_by_series(project, align(month, now, now)),
        "board of 90 days": lambda: counts_by_series(project, align(now - 90 * DAY, now, now)),
        "board of 24 hours, one prompt version": lambda: counts_by_series(
            project, align(day, now, now, Grain.HOUR), prompt
        ),
        "curves of 24 hours, by 15 minutes": lambda: trends(project, day, now, 96),
        "curves of 7 days, by hour": lambda: trends(project, now - 7 * DAY, now, 84),
    }


def _lists(project: int, now: datetime) -> Mapping[str, Answer]:
    until = now + timedelta(minutes=1)
    deep, deepest = (_cursor(project, now - days * DAY) for days in (15, 29))
    rare = {"model": "model-7", "kind": "parse_invalid"}
    return {
        "groups of 24 hours": lambda: groups_of(project, GroupQuestion(now - DAY, until), PAGE),
        "groups of 30 days": lambda: groups_of(project, GroupQuestion(now - 30 * DAY, until), PAGE),
        "first page of events": lambda: EVENT_ORDER.page(events_of(project), 100, None),
        "page of events, 15 days down": lambda: EVENT_ORDER.page(events_of(project), 100, deep),
        "page of events, 29 days down": lambda: EVENT_ORDER.page(events_of(project), 100, deepest),
        "page of a rare failure": _listing(project, now, rare),
        "page of a word that many have": _listing(project, now, {"q": "truncated"}),
        "page of a word that none has": _listing(project, now, {"q": "nowhere"}),
        "page of a pointer": _listing(project, now, {"q": "pointer:/steps/2/tool"}),
        "page of a pointer that none has": _listing(project, now, {"q": "pointer:/no"}),
    }


def _listing(project: int, now: datetime, asked: Mapping[str, str]) -> Answer:
    """Ask for a page of the events of the last 7 days that meet a filter."""
    selection = read_selection({"range": "7d", **asked})
    since, until = selection.window(now)
    found_in = matching(project, selection)
    if selection.scans_events:
        return lambda: scan(found_in, since, until, PAGE + 1)
    return lambda: EVENT_ORDER.page(found_in(since, until), PAGE, None)


def _cursor(project: int, at: datetime) -> str | None:
    """Give a cursor far down: as if one had paged there."""
    return EVENT_ORDER.page(events_of(project).filter(occurred_at__lt=at), 1, None)[1]
