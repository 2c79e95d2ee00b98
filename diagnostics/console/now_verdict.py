"""The head of the Now page: the verdict, what to change, the incident, and its marks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from diagnostics import clock
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.incident_records import is_kept, judged_of
from diagnostics.alerting.incident_views import answer_task
from diagnostics.alerting.task_facts import task_of
from diagnostics.alerting.wording import slice_words
from diagnostics.queries.call_counts import kind_filter
from diagnostics.selection.selection import Selection, read_selection
from diagnostics.verdict.ratings import mark_of, mark_verdict
from diagnostics.verdict.statuses import recent_verdict_of
from diagnostics.verdict.suspects import Cause
from diagnostics.verdict.verdicts import Verdict, kept_form
from diagnostics.web.access import ConsoleRequest, member_view, require_actor
from diagnostics.web.filter_bar import read_filters

MOST_SHARES = 6
MOST_SERIES = 10
MOST_OPEN = 20
SILENCE_HOURS = (1, 4, 8, 24)
VERSION_OF = {Cause.PROMPT: "prompt_version"}


def panel(
    project_id: int, selection: Selection, verdict: Verdict, now: datetime
) -> Mapping[str, Any]:
    """Return what stands with the sentence; four queries."""
    degrades = verdict.state == "degrading"
    return {
        "told": verdict.told,
        "excess": verdict.finding.shares[:MOST_SHARES] if degrades else (),
        "narrowed": selection.query_for(**_subject(verdict)) if degrades else "",
        "failures_query": _failures(selection, verdict) if degrades else "",
        "open": _open(project_id, selection, _subject(verdict) if degrades else {}),
        "marked": mark_of(project_id, kept_form(verdict)),
        "judged": judged_of(project_id, now),
        "query": selection.query(),
        "silence_hours": SILENCE_HOURS,
    }


def _subject(verdict: Verdict) -> dict[str, str | None]:
    """Return the filters that lead to what is hit."""
    subject = verdict.who._asdict() if verdict.who else {}
    found = {name: value for name, value in subject.items() if value is not None}
    cause, value = verdict.finding.cause, verdict.finding.value
    if cause in VERSION_OF:
        found[VERSION_OF[cause]] = value
    if cause is Cause.PROVIDER_OUTAGE:
        found["provider"] = value
    return dict(found)


def _failures(selection: Selection, verdict: Verdict) -> str:
    kind = verdict.finding.top_kind
    narrowed = {**_subject(verdict), **({"kind": kind_filter(kind)} if kind else {})}
    return selection.query_for(**narrowed)


def _open(
    project_id: int, selection: Selection, subject: Mapping[str, str | None]
) -> Sequence[Incident]:
    """Return the open incidents that are shown: of the verdict's subject first, then the latest."""
    rows = Incident.objects.filter(project_id=project_id, cleared_at__isnull=True)
    latest = rows.prefetch_related("slices").order_by("-fired_at", "-pk")[:MOST_OPEN]
    shown = [one for one in latest if is_kept(one, selection.terms)]
    return sorted(shown, key=lambda one: not _is_about(one, subject))


def _is_about(incident: Incident, subject: Mapping[str, str | None]) -> bool:
    """Whether a slice of an incident names what the verdict is about, and nothing else."""
    return any(
        subject.keys() & part.slice.keys()
        and all(subject[name] == value for name, value in part.slice.items() if name in subject)
        for part in incident.slices.all()
    )


@require_safe
@member_view
def verdict_task(request: ConsoleRequest) -> HttpResponse:
    """Show the evidence of the verdict of a selection as a text to copy."""
    selection, now = read_filters(request), clock.now()
    verdict = recent_verdict_of(request.project.pk, selection, now)
    hit = replace(selection, filters={**selection.filters, **_subject(verdict)})
    series = sorted(verdict.touched, key=str)
    back = f"{reverse('now')}?{selection.query()}".rstrip("?")
    facts = task_of(
        request.project,
        kept_form(verdict),
        hit,
        [slice_words(one._asdict()) for one in series[:MOST_SERIES]],
        now,
        links={"Verdict": back},
    )
    return answer_task(request, facts, back, "Now")


@require_POST
@member_view
def mark_now(request: ConsoleRequest) -> HttpResponse:
    """Mark the verdict of a selection right or wrong, as it is shown."""
    by = require_actor(request)
    asked = dict(parse_qsl(request.POST.get("query", "")))
    selection = read_selection(asked)
    verdict = recent_verdict_of(request.project.pk, selection, clock.now())
    is_right = request.POST.get("said") == "right"
    mark_verdict(request.project.pk, kept_form(verdict), by, is_right=is_right)
    return redirect(f"{reverse('now')}?{selection.query()}".rstrip("?"))
