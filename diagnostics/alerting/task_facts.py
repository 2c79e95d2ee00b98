"""What a task tells, read from what is stored: the failures that rose, each with a sample."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.urls import reverse

from diagnostics.accounts.models import Project
from diagnostics.alerting.task_text import TaskFacts, TaskFailure
from diagnostics.failures.counts import GroupQuestion
from diagnostics.failures.excerpt import Excerpt, excerpt
from diagnostics.failures.groups import GroupRow, Sample, Sort, groups_of, samples_of
from diagnostics.failures.wording import title_of
from diagnostics.selection.selection import Selection
from diagnostics.verdict.wording import since_of

WEEK = timedelta(days=7)
MOST_READ, MOST_TOLD = 20, 5


def task_of(
    project: Project,
    verdict: Mapping[str, Any],
    selection: Selection,
    affected: Sequence[str],
    now: datetime,
    *,
    links: Mapping[str, str],
    title: str = "",
) -> TaskFacts:
    """Return the facts of a task; the selection keeps what is affected, `links` are paths."""
    since = since_of(verdict) or selection.window(now)[0]
    query = selection.query()
    paths = {**links, "Failures": f"{reverse('failures')}?{query}", "Series": f"/?{query}"}
    api = f"{settings.FAILSOFT_BASE_URL}{reverse('api_verdict')}?{query}"
    return TaskFacts(
        project=project.name,
        verdict=verdict,
        affected=affected,
        failures=risen_failures(project.pk, selection, since, now),
        links=[
            *((name, f"{settings.FAILSOFT_BASE_URL}{path}") for name, path in paths.items()),
            ("Verdict as JSON", f'curl -H "Authorization: Bearer $FAILSOFT_API_KEY" "{api}"'),
        ],
        title=title,
    )


def risen_failures(
    project_id: int, selection: Selection, since: datetime, until: datetime, most: int = MOST_TOLD
) -> list[TaskFailure]:
    """Return the failures that rose most above the week before, each with a redacted sample."""
    question = GroupQuestion(since, until, selection.rollup_terms)
    rows, _ = groups_of(project_id, question, MOST_READ, order=Sort.MOST)
    ids = [row.group.pk for row in rows]
    week = replace(question, since=since - WEEK, until=since, ids=ids)
    earlier, _ = groups_of(project_id, week, MOST_READ) if ids else ([], None)
    before = {row.group.pk: row.seen for row in earlier}
    due = (until - since) / WEEK
    risen = sorted(rows, key=lambda row: before.get(row.group.pk, 0) * due - row.seen)
    return [
        _failure(row, before.get(row.group.pk, 0), since, until)
        for row in risen[:most]
        if row.seen > before.get(row.group.pk, 0) * due
    ]


def _failure(row: GroupRow, before: int, since: datetime, until: datetime) -> TaskFailure:
    group = row.group
    samples, _ = samples_of(group, since, until, 1)
    error, shown = _first_error(samples[0]) if samples else ("", None)
    return TaskFailure(
        title=title_of(group.kind, group.error_type, group.pointer, group.detail),
        node=group.node,
        seen=row.seen,
        before=before,
        address=f"{settings.FAILSOFT_BASE_URL}{reverse('failure', args=[group.pk])}",
        error=error,
        shown=shown,
    )


def _first_error(sample: Sample) -> tuple[str, Excerpt | None]:
    """Return the first error of a failure, and the lines of its output around it."""
    event, payload = sample
    first: Mapping[str, Any] = next(iter(payload.validation_errors), {})
    known = (payload.tool, event.call_error_type, *(first.get(x) for x in ERROR))
    text = payload.raw_output_preview
    shown = excerpt(text, [_position(first)]) if text else None
    return ": ".join(str(part) for part in known if part), shown


ERROR = ("path", "code", "message")


def _position(error: Mapping[str, Any]) -> tuple[int, int]:
    """Return line and column, 0 where they are not told."""
    line, column = (error.get(name) for name in ("line", "column"))
    is_told = isinstance(line, int) and isinstance(column, int)
    return (line or 0, column or 1) if is_told else (0, 0)
