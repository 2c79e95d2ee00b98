"""The verdict of a selection on the Now page: as a task, and whether it was right."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from diagnostics import clock
from diagnostics.alerting.incident_views import answer_task
from diagnostics.alerting.statuses import recent_verdict_of
from diagnostics.alerting.task_text import task_of
from diagnostics.alerting.wording import slice_words
from diagnostics.queries.call_counts import kind_filter
from diagnostics.selection.selection import Selection, read_selection
from diagnostics.verdict.cause import Cause
from diagnostics.verdict.ratings import OUTDATED, mark_of, mark_verdict, sign_verdict
from diagnostics.verdict.verdicts import Verdict, stored_form
from diagnostics.web.access import ConsoleRequest, member_action, member_page, require_actor
from diagnostics.web.filter_bar import read_filters

FIELD_OF = {Cause.PROMPT: "prompt_version", Cause.PROVIDER_OUTAGE: "provider"}


def rating(
    project_id: int, selection: Selection, suspected: Sequence[Verdict]
) -> Mapping[str, Any]:
    """Return how the gravest cause without an incident was rated, and where its failures are."""
    if not suspected:
        return {}
    first = suspected[0]
    kind = first.finding.top_kind
    narrowed = {**_subject(first), **({"kind": kind_filter(kind)} if kind else {})}
    stored = stored_form(first)
    return {
        "marked": mark_of(project_id, stored),
        "verdict": sign_verdict(project_id, stored),
        "failures": selection.query_for(**narrowed),
    }


def _subject(verdict: Verdict) -> dict[str, str | None]:
    """Return the filters that lead to what is hit."""
    subject = verdict.who._asdict() if verdict.who else {}
    named = {name: value for name, value in subject.items() if value is not None}
    cause, value = verdict.finding.cause, verdict.finding.value
    if cause in FIELD_OF:
        named[FIELD_OF[cause]] = value
    return dict(named)


@member_page
def verdict_task(request: ConsoleRequest) -> HttpResponse:
    """Show the evidence of the verdict of a selection as a text to copy."""
    selection, now = read_filters(request), clock.now()
    verdict = recent_verdict_of(request.project.pk, selection, now)
    hit = replace(selection, filters={**selection.filters, **_subject(verdict)})
    series = sorted(verdict.touched, key=str)
    back = f"{reverse('now')}?{selection.query()}".rstrip("?")
    facts = task_of(
        request.project,
        stored_form(verdict),
        hit,
        [slice_words(status._asdict()) for status in series],
        now,
        links={"Verdict": back},
    )
    return answer_task(request, facts, back, "Now")


@member_action
def mark_now(request: ConsoleRequest) -> HttpResponse:
    """Mark the verdict that was shown for a selection right or wrong."""
    if not mark_verdict(request.project.pk, request.POST, require_actor(request)):
        messages.error(request, OUTDATED)
    selection = read_selection(dict(parse_qsl(request.POST.get("query", ""))))
    return redirect(f"{reverse('now')}?{selection.query()}".rstrip("?"))
