"""The prompts page: versions on a time line, models across, and what each brought."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from diagnostics import clock
from diagnostics.core.charts.lanes import Lane, lane
from diagnostics.core.failure_words import title_of
from diagnostics.core.marks import Mark, place_of
from diagnostics.core.matrix import Excess
from diagnostics.core.prompt_versions import ModelKey, Version, versions_of
from diagnostics.core.selection import Selection
from diagnostics.models import FailureGroup
from diagnostics.queries.marks import marks_between
from diagnostics.queries.prompts import (
    Axis,
    axis_of,
    new_failures,
    placed_versions,
    used_versions,
)
from diagnostics.views.access import ConsoleRequest, member_view
from diagnostics.views.filtering import filter_frame, read_filters
from diagnostics.views.models import failures_url
from diagnostics.views.pages import respond

SHORTEST = timedelta(days=14)
SLOTS = 56
MOST_MODELS = 8
MOST_VERSIONS = 16
MOST_SOURCES = 8
MOST_LINES = 18
MOST_NEW = 4
MOST_MARKS = 24


@dataclass(frozen=True, slots=True)
class Line:
    """A version as a row: its lane, its calls against the version before, what is new."""

    version: Version
    lane: Lane
    share: float
    first: datetime
    last: datetime
    is_in_use: bool
    total: Excess | None
    cells: Sequence[tuple[Excess | None, str | None]]
    new: Sequence[tuple[FailureGroup, str]]
    failures_url: str | None


@dataclass(frozen=True, slots=True)
class Section:
    """The versions of one source, newest first."""

    source: str | None
    lines: Sequence[Line]
    left_out: int


@require_safe
@member_view
def prompts(request: ConsoleRequest) -> HttpResponse:
    """Show prompt versions: when, how much, how well, and what came with them."""
    selection = read_filters(request)
    context = prompts_context(request.project.pk, selection, clock.now())
    frame = filter_frame(request, selection)
    return respond(request, "prompts/timeline", {**frame, **context, "section": "prompts"})


def prompts_context(project_id: int, selection: Selection, now: datetime) -> Mapping[str, Any]:
    """Read the page; the number of queries does not grow."""
    since, until = selection.window(now)
    axis = axis_of(min(since, until - SHORTEST), until, SLOTS)
    terms = selection.rollup_terms
    by_source = versions_of(
        used_versions(project_id, axis, terms), placed_versions(project_id, axis, terms)
    )
    marks = marks_between(project_id, axis.since, axis.until, terms)
    new = new_failures(project_id, axis)
    models = _models(by_source.values())
    shown = _busiest(by_source)
    most = min(MOST_LINES // max(len(shown), 1), MOST_VERSIONS)
    sections = [
        _section(source, versions, most, axis, marks, new, models, selection)
        for source, versions in shown.items()
    ]
    return {
        "sections": sections,
        "sources_left_out": len(by_source) - len(shown),
        "models": models,
        "days": round((axis.until - axis.since) / timedelta(days=1)),
        "marks": [mark for mark in reversed(marks) if mark.kind != "release"][:MOST_MARKS],
        "since": axis.since,
        "until": min(axis.until, now),
        "is_empty": not by_source and not selection.terms,
    }


def _models(found: Iterable[Sequence[Version]]) -> Sequence[ModelKey]:
    calls: Counter[ModelKey] = Counter()
    for versions in found:
        for version in versions:
            for model, counts in version.models.items():
                calls[model] += counts.calls
    return [model for model, _ in calls.most_common(MOST_MODELS)]


def _busiest(
    by_source: Mapping[str | None, Sequence[Version]],
) -> Mapping[str | None, Sequence[Version]]:
    """Keep the sources with the most calls, in the order in which they stand."""
    calls = {
        source: sum(sum(version.slots.values()) for version in versions)
        for source, versions in by_source.items()
    }
    kept = sorted(calls, key=lambda source: -calls[source])[:MOST_SOURCES]
    return {source: versions for source, versions in by_source.items() if source in kept}


def _section(
    source: str | None,
    versions: Sequence[Version],
    most: int,
    axis: Axis,
    marks: Sequence[Mark],
    new: Mapping[tuple[str | None, str | None], list[FailureGroup]],
    models: Sequence[ModelKey],
    selection: Selection,
) -> Section:
    totals = [0] * axis.count
    for version in versions:
        for slot, calls in version.slots.items():
            totals[slot] += calls
    span = axis.until - axis.since
    ticks = [
        place_of(mark, axis.since, span, 1000) / 1000
        for mark in marks
        if mark.kind != "release" or _is_of(mark, source)
    ]
    shown = list(reversed(versions))[:most]
    lines = [_line(version, axis, totals, ticks, new, models, selection) for version in shown]
    return Section(source, lines, len(versions) - len(shown))


def _is_of(mark: Mark, source: str | None) -> bool:
    return source is not None and f"({source})" in mark.label


def _line(
    version: Version,
    axis: Axis,
    totals: Sequence[int],
    ticks: Sequence[float],
    new: Mapping[tuple[str | None, str | None], list[FailureGroup]],
    models: Sequence[ModelKey],
    selection: Selection,
) -> Line:
    named = {"source": version.source, "prompt_version": version.name}
    groups = new.get((version.source, version.name), []) if version.before else []
    everything = sum(totals)
    return Line(
        version,
        lane(version.slots, totals, ticks, version.name or "unknown"),
        sum(version.slots.values()) / everything if everything else 0.0,
        axis.since + version.first_slot * axis.width,
        min(axis.since + (version.last_slot + 1) * axis.width, axis.until),
        version.last_slot >= axis.count - 2,
        version.against_before(),
        [
            (
                version.against_before(model),
                failures_url(selection, provider=model[0], model=model[1], **named),
            )
            for model in models
        ],
        [
            (
                group,
                f"{title_of(group.kind, group.error_type, group.pointer, group.detail)}"
                f" · {group.node.replace('_', ' ')}",
            )
            for group in groups[:MOST_NEW]
        ],
        failures_url(selection, **named),
    )
