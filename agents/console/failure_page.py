"""A kind of failure: what, where, since when, how bad, and what to change."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.http import Http404, HttpResponse

from agents.badges import outcome_badge
from agents.console.moments import fault_spans
from agents.fix_patterns.views import patterns_of
from diagnostics import clock
from diagnostics.alerting.incident_charts import marks_between
from diagnostics.analysis.series import SeriesOnset
from diagnostics.analysis.statistics import wilson_interval
from diagnostics.failures.counts import LONGEST_RUN, GroupQuestion, is_of_kinds, read_question
from diagnostics.failures.excerpt import excerpt
from diagnostics.failures.groups import GroupRow, Sample, group_row, neighbours_of, samples_of
from diagnostics.failures.models import FailureGroup, GroupChange
from diagnostics.failures.places import advise_group, summarise
from diagnostics.failures.shares import FailureCurve, calls_by_node, curve_of, places_of
from diagnostics.failures.states import MOST_PREVIEWED, preview_regrouping
from diagnostics.failures.views import failure_url, narrowed_to
from diagnostics.failures.wording import MEANINGS, STATES, title_of
from diagnostics.figures import read_number
from diagnostics.rest.cursors import BadCursorError
from diagnostics.selection.fields import FIELDS
from diagnostics.store.fingerprints import Preview, Regrouping
from diagnostics.store.models import Event
from diagnostics.verdict.queries import failure_evidence
from diagnostics.web.charts.series import SeriesChart
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import ConsoleRequest, member_page, respond

TABS: Mapping[str, str] = {
    "samples": "Samples",
    "runs": "Runs",
    "history": "History and comments",
    "why": "Grouping",
}
MOST_CHANGES = 200
DEEPEST = 20
MOST_WILD = 10
ENDS = ("succeeded", "degraded", "cancelled")


def chart_of(
    project_id: int, curve: FailureCurve, question: GroupQuestion, query: str, noun: str
) -> SeriesChart | None:
    if not any(bucket.runs for bucket in curve.buckets):
        return None
    marks = marks_between(project_id, curve.since, curve.until, question.terms)
    began = curve.began_at
    return SeriesChart(
        name="failure",
        title=f"Failures as a share of {noun}s",
        since=curve.since,
        width=curve.width,
        slots=curve.buckets,
        as_of=question.end,
        noun=noun,
        failing="failing",
        baseline=curve.usual,
        onset=SeriesOnset(began, began, began + curve.width) if began else None,
        marks=marks,
        query=query,
    )


def shown_sample(samples: Sequence[Sample], wanted: str) -> Mapping[str, Any] | None:
    """Return the sample of an event id, else the latest, with its neighbours; None without any."""
    if not samples:
        return None
    ids = [str(event.event_id) for event, _ in samples]
    place = ids.index(wanted) if wanted in ids else 0
    event, payload = samples[place]
    text, errors = payload.raw_output_preview, payload.validation_errors
    return {
        "event": event,
        "payload": payload,
        "number": place + 1,
        "newer": ids[place - 1] if place else None,
        "older": ids[place + 1] if place + 1 < len(ids) else None,
        # The lines around the first fault; none where no text is kept.
        "excerpt": excerpt(text, fault_spans(errors)) if text else None,
        "errors": errors,
    }


SAMPLES = 25
KEPT = ("tab",)
OPEN_PLACES = 3
WITHOUT_KIND = {*FIELDS, "q"} - {"kind"}


@member_page
def failure(request: ConsoleRequest, group_id: int) -> HttpResponse:
    """Show one kind of failure; a foreign and an unknown one are both not found."""
    selection = read_filters(request)
    now = clock.now()
    question, notice = read_question(selection, now)
    covers = None if notice else selection.covered(question.begin, question.end, now)
    row = group_row(request.project.pk, group_id, question)
    if row is None:
        raise Http404
    window = (question.begin, question.end, SAMPLES)
    try:
        cursor = request.GET.get("before") or None
        samples, older = samples_of(row.group, *window, cursor, selection)
    except BadCursorError:
        samples, older = samples_of(row.group, *window, None, selection)
    query, tab = selection.query(), request.GET.get("tab", "")
    # The samples themselves are read for every tab.
    read_tab = _READERS.get(tab)
    before, after = neighbours_of(request.project.pk, group_id, question)
    kind, error_type = row.group.kind, row.group.error_type
    context = {
        **_facts(request, row, question, samples, query),
        "query": query,
        "before": failure_url(before, query) if before else None,
        "after": failure_url(after, query) if after else None,
        **filter_frame(
            request,
            selection,
            # Its counts are of one failure, whatever kinds are asked for.
            applies=None if is_of_kinds(question.kinds, kind, error_type) else WITHOUT_KIND,
            about=narrowed_to(selection, row.group),
            kept=KEPT,
            covers=covers,
        ),
        "sample": shown_sample(samples, request.GET.get("sample", "")),
        "samples": samples,
        "older": older,
        "notice": notice,
        "tab": tab if tab in TABS else "samples",
        "tabs": TABS.items(),
        "shown": read_tab(request, row.group, samples, question) if read_tab else None,
        "section": "failures",
    }
    return respond(request, "failures/failure", context, context["title"])


def _facts(
    request: ConsoleRequest,
    row: GroupRow,
    question: GroupQuestion,
    samples: list[Sample],
    query: str,
) -> Mapping[str, Any]:
    project_id, group = request.project.pk, row.group
    places = places_of(project_id, group, question)
    curve = curve_of(project_id, group, question)
    calls = calls_by_node(project_id, question).get(group.node) or None
    evidence = [failure_evidence(event, payload) for event, payload in samples]
    return {
        "row": row,
        "group": group,
        "title": title_of(group.kind, group.error_type, group.pointer, group.detail, group.node),
        "tone": STATES[group.state],
        "meaning": MEANINGS[group.state],
        "calls": calls,
        "rate": calls.share_of(row.seen) if calls else None,
        "repaired": wilson_interval(row.repaired, row.runs) if row.runs else None,
        "places": [place for place in places if place.rows][:OPEN_PLACES],
        "more_places": [place for place in places if place.rows][OPEN_PLACES:],
        "summary": summarise(places),
        "curve": curve,
        "hours": (curve.until - curve.since).total_seconds() / 3600,
        "chart": chart_of(project_id, curve, question, query, calls.noun if calls else "call"),
        "advice": advise_group(group.kind, group.error_type, evidence, places),
        "patterns": patterns_of(project_id, group),
    }


def _runs(
    request: ConsoleRequest, _: FailureGroup, samples: Sequence[Sample], __: GroupQuestion
) -> list[Mapping[str, Any]]:
    """Return the runs that the latest failures hit, and how each ended as far as is known."""
    by_run: dict[tuple[str, int], list[Event]] = {}
    for event, _payload in samples:
        by_run.setdefault((event.correlation_id, event.cycle), []).append(event)
    ends = _ends(request.project.pk, [event for event, _ in samples])
    return [
        {
            "correlation_id": key[0],
            "cycle": key[1],
            "at": events[0].occurred_at,
            "model": events[0].model,
            "failures": len(events),
            "badge": outcome_badge(ends.get((*key, events[0].node))),
        }
        for key, events in by_run.items()
    ]


def _ends(project_id: int, failures: Sequence[Event]) -> Mapping[tuple[str, int, str], str]:
    if not failures:
        return {}
    times = [event.occurred_at for event in failures]
    ends = Event.objects.filter(
        project_id=project_id,
        correlation_id__in={event.correlation_id for event in failures},
        kind__in=ENDS,
        occurred_at__gte=min(times),
        occurred_at__lt=max(times) + LONGEST_RUN,
    ).order_by("occurred_at")
    return {
        (end.correlation_id, end.cycle, end.node): _outcome(end)
        for end in ends[: len(failures) * 20]
    }


def _outcome(end: Event) -> str:
    if end.unchecked or end.kind == "cancelled":
        return "unchecked" if end.unchecked else "cancelled"
    if end.kind == "succeeded":
        return "ok_first" if end.attempt == 1 else "repaired"
    known = {"circuit_open", "provider_failed", "budget_exhausted"}
    if end.reason in known:
        return end.reason or "degraded"
    return "stubbed" if end.status == "stubbed" else "degraded"


def _history(
    _: ConsoleRequest, group: FailureGroup, __: Sequence[Sample], ___: GroupQuestion
) -> list[GroupChange]:
    changes = group.changes.select_related("by").order_by("-at", "-pk")
    return list(changes[:MOST_CHANGES])


def _why(
    request: ConsoleRequest, group: FailureGroup, _: Sequence[Sample], question: GroupQuestion
) -> Mapping[str, Any]:
    """Return what made the fingerprint, and what another way of grouping would change."""
    depth = read_number(request.GET.get("depth"), 2)
    keys = (key.strip()[:100] for key in request.GET.get("wild", "")[:1_000].split(","))
    regrouping = Regrouping(
        ignores_schema=request.GET.get("ignore_schema") == "1",
        ignores_detail=request.GET.get("ignore_detail") == "1",
        pointer_depth=None if depth is None else min(depth, DEEPEST),
        wild_keys=tuple(key for key in keys if key)[:MOST_WILD],
    )
    shown: dict[str, Any] = {
        "parts": [
            ("node", group.node),
            ("schema", group.schema or "not set"),
            ("event kind", group.kind),
            ("error type", group.error_type),
            ("pointer", group.pointer or "whole output"),
            ("error detail", group.detail or "none"),
        ],
        "regrouping": regrouping,
        "wild": ", ".join(regrouping.wild_keys),
        "most": MOST_PREVIEWED,
    }
    if regrouping != Regrouping():
        preview = preview_regrouping(request.project.pk, regrouping, question.begin)
        split = list(preview.split.get(group.fingerprint, {}).items())
        shown |= {"preview": preview, "merged": _merged(group, preview), "split": split}
    return shown


def _merged(
    group: FailureGroup, preview: Preview
) -> list[tuple[str, list[tuple[FailureGroup, int]]]]:
    """Return the new kinds that take in this group, each with the groups of today in it."""
    kept = {
        kind: seen_by for kind, seen_by in preview.merged.items() if group.fingerprint in seen_by
    }
    known = {
        row.fingerprint: row
        for row in FailureGroup.objects.filter(
            project_id=group.project_id,
            fingerprint__in={name for fingerprints in kept.values() for name in fingerprints},
        )
    }
    return [
        (
            title_of(kind.kind, kind.error_type, kind.pointer, kind.detail, kind.node),
            [(known[name], seen) for name, seen in fingerprints.items() if name in known],
        )
        for kind, fingerprints in kept.items()
    ]


_Reader = Callable[[ConsoleRequest, FailureGroup, Sequence[Sample], GroupQuestion], object]
_READERS: Mapping[str, _Reader] = {"runs": _runs, "history": _history, "why": _why}
