"""The prompts page: versions over time, models across, and what each brought."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any

from django.http import HttpResponse

from diagnostics import clock
from diagnostics.alerting.incident_charts import marks_between
from diagnostics.analysis.series import ModelKey
from diagnostics.console.models_page import failures_url
from diagnostics.failures.models import FailureGroup
from diagnostics.failures.wording import title_of
from diagnostics.queries.call_counts import FAILING, CallCounts, add_counts, count_failing
from diagnostics.queries.matrix import Excess, excess_of_rate
from diagnostics.queries.sums import Question, Slots, sum_rollups
from diagnostics.selection.fields import DEFAULT_RANGE
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import ROLLUP_FIELDS, Selection
from diagnostics.store.sql import fetch, statement
from diagnostics.store.windows import WIDTHS, Grain, TimeWindow, align_to
from diagnostics.web.charts.bars import lane
from diagnostics.web.charts.scales import share_of
from diagnostics.web.charts.series import Mark
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import ConsoleRequest, member_page, respond

VERSIONS = ("source", "prompt_version")
ROLLED_OUT = 0.25
"""The share of its source's calls from which on a version counts as in use."""
VersionKey = tuple[str | None, str | None]
"""Source and prompt version."""
MOST_BY_HOUR = timedelta(days=15)
"""Longer ones are read by the day (UTC)."""


@dataclass(frozen=True, slots=True)
class VersionAxis:
    """Equal slots of whole hours, or of days, and the window in them that is counted."""

    since: datetime
    until: datetime
    width: timedelta
    window: TimeWindow

    @property
    def count(self) -> int:
        return -(-(self.until - self.since) // self.width)


def axis_of(since: datetime, until: datetime, most_slots: int) -> VersionAxis:
    """Divide a stretch of time into at most so many slots, of whole hours or days."""
    grain = Grain.DAY if until - since > MOST_BY_HOUR else Grain.HOUR
    whole, each = align_to(grain, since, until), WIDTHS[grain]
    widths = max(-(-(whole.until - whole.since) // (most_slots * each)), 1)
    counted = align_to(Grain.HOUR, since, until)
    return VersionAxis(whole.since, whole.until, widths * each, counted)


def used_versions(
    project_id: int, axis: VersionAxis, terms: Sequence[Term]
) -> Mapping[VersionKey, Mapping[ModelKey, CallCounts]]:
    question = Question(axis.window, (*VERSIONS, "provider", "model"), FAILING, terms)
    versions: dict[VersionKey, dict[ModelKey, CallCounts]] = defaultdict(dict)
    for source, version, provider, model, *sums in sum_rollups(project_id, question):
        counts = count_failing(*sums)
        if counts.calls:
            versions[source, version][provider, model] = counts
    return versions


def placed_versions(
    project_id: int, axis: VersionAxis, terms: Sequence[Term]
) -> Mapping[VersionKey, Mapping[int, int]]:
    """Return the calls of every prompt version in every slot; models are added up."""
    slots = Slots(axis.since, axis.width, axis.count)
    question = Question(axis.window, VERSIONS, ("attempts", "runs"), terms, slots)
    placed: dict[VersionKey, dict[int, int]] = defaultdict(dict)
    for source, version, slot, attempts, runs in sum_rollups(project_id, question):
        # As `count_failing` has it: where no call was told, runs stand for them.
        if calls := attempts or runs:
            placed[source, version][slot] = calls
    return placed


def new_failures(project_id: int, axis: VersionAxis) -> Mapping[VersionKey, list[FailureGroup]]:
    """Return the failure groups that were first seen with a version, by source and version."""
    params: dict[str, int | datetime] = {
        "project": project_id,
        "since": axis.window.since,
        "until": axis.window.until,
    }
    rows = fetch(statement("groups_by_version"), params)
    groups = FailureGroup.objects.filter(project_id=project_id).in_bulk([row[0] for row in rows])
    failures: dict[VersionKey, list[FailureGroup]] = defaultdict(list)
    for group_id, source, version in rows:
        # One that was deleted since is left out.
        if group_id in groups:
            failures[source, version].append(groups[group_id])
    return failures


@dataclass
class PromptVersion:
    source: str | None
    name: str | None
    slots: Mapping[int, int]
    """Calls by slot."""
    models: Mapping[ModelKey, CallCounts]
    began: int = 0
    """The first slot in which it had a quarter of its source's calls."""
    before: "PromptVersion | None" = None

    @property
    def first_slot(self) -> int:
        return min(self.slots)

    @property
    def last_slot(self) -> int:
        return max(self.slots)

    @cached_property
    def total(self) -> CallCounts:
        return add_counts(list(self.models.values()))

    def against_before(self, model: ModelKey | None = None) -> Excess | None:
        """Compare with the version before, of one model or of all; None without one."""
        figures = self.total if model is None else self.models.get(model)
        if figures is None:
            return None
        past = CallCounts()
        if self.before is not None:
            before = self.before
            past = before.total if model is None else before.models.get(model, past)
        return excess_of_rate("failed", figures, past)


def versions_of(
    used: Mapping[VersionKey, Mapping[ModelKey, CallCounts]],
    placed: Mapping[VersionKey, Mapping[int, int]],
) -> dict[str | None, list[PromptVersion]]:
    """Return the versions of each source, oldest first, each with the one before it.

    `used` has the calls of every model, `placed` their number in every slot. A version without
    a call in any slot is left out.
    """
    by_name: dict[str | None, list[PromptVersion]] = defaultdict(list)
    for (source, name), by_slot in placed.items():
        models = used.get((source, name), {})
        by_name[source].append(PromptVersion(source, name, by_slot, models))
    for versions in by_name.values():
        totals: Counter[int] = Counter()
        for version in versions:
            totals.update(version.slots)
        for version in versions:
            slots = version.slots.items()
            # A trial with a few calls is no roll-out: it would be in the wrong order.
            often = [slot for slot, calls in slots if calls >= ROLLED_OUT * totals[slot]]
            version.began = min(often, default=version.first_slot)
        versions.sort(key=lambda version: (version.began, version.last_slot, version.name or ""))
        for before, version in pairwise(versions):
            version.before = before
    return dict(sorted(by_name.items(), key=lambda item: item[0] or ""))


RANGE = "30d"
"""Shown unless another is asked for: versions live for days."""
SLOTS = 56
MOST_MODELS = 8
MOST_VERSIONS = 16
MOST_SOURCES = 8
MOST_LINES = 18
MOST_NEW = 4
MOST_MARKS = 24


@member_page
def prompts(request: ConsoleRequest) -> HttpResponse:
    selection = read_filters(request, RANGE)
    now = clock.now()
    context = prompts_context(request.project.pk, selection, now)
    covers = selection.covered(context["since"], context["axis_until"], now)
    frame = filter_frame(request, selection, applies=ROLLUP_FIELDS, covers=covers)
    return respond(
        request, "prompts/timeline", {**frame, **context, "section": "prompts"}, "Prompts"
    )


def prompts_context(project_id: int, selection: Selection, now: datetime) -> Mapping[str, Any]:
    """Read the page; the number of queries does not grow."""
    since, until = selection.window(now)
    axis = axis_of(since, until, SLOTS)
    selection = replace(selection, default_range=DEFAULT_RANGE)
    terms = selection.rollup_terms
    by_source = versions_of(
        used_versions(project_id, axis, terms), placed_versions(project_id, axis, terms)
    )
    marks = marks_between(project_id, axis.since, axis.until, terms)
    new = new_failures(project_id, axis)
    models = _models(by_source.values())
    calls = {
        source: sum(sum(version.slots.values()) for version in versions)
        for source, versions in by_source.items()
    }
    shown = sorted(calls, key=lambda source: -calls[source])[:MOST_SOURCES]
    most = min(MOST_LINES // max(len(shown), 1), MOST_VERSIONS)
    sections = [
        _section(source, by_source[source], most, axis, marks, new, models, selection)
        for source in shown
    ]
    return {
        "sections": sections,
        "sources_left_out": len(by_source) - len(shown),
        "models": models,
        "marks": [mark for mark in reversed(marks) if mark.kind != "release"][:MOST_MARKS],
        "since": axis.since,
        "until": min(axis.until, now),
        "axis_until": axis.window.until,
        "is_empty": not by_source and not selection.terms,
    }


def _models(found: Iterable[Sequence[PromptVersion]]) -> Sequence[ModelKey]:
    calls: Counter[ModelKey] = Counter()
    for versions in found:
        for version in versions:
            for model, counts in version.models.items():
                calls[model] += counts.calls
    return [model for model, _ in calls.most_common(MOST_MODELS)]


def _section(
    source: str | None,
    versions: Sequence[PromptVersion],
    most: int,
    axis: VersionAxis,
    marks: Sequence[Mark],
    new: Mapping[VersionKey, list[FailureGroup]],
    models: Sequence[ModelKey],
    selection: Selection,
) -> Mapping[str, Any]:
    called: Counter[int] = Counter()
    for version in versions:
        called.update(version.slots)
    totals = [called[slot] for slot in range(axis.count)]
    ticks = [
        share_of(mark.at, axis.since, axis.until)
        for mark in marks
        if mark.kind != "release" or (source is not None and f"({source})" in mark.label)
    ]
    shown = list(reversed(versions))[:most]
    lines = [_line(version, axis, totals, ticks, new, models, selection) for version in shown]
    return {"source": source, "lines": lines, "left_out": len(versions) - len(shown)}


def _line(
    version: PromptVersion,
    axis: VersionAxis,
    totals: Sequence[int],
    ticks: Sequence[float],
    new: Mapping[VersionKey, list[FailureGroup]],
    models: Sequence[ModelKey],
    selection: Selection,
) -> Mapping[str, Any]:
    named = {"source": version.source, "prompt_version": version.name}
    groups = new.get((version.source, version.name), []) if version.before else []
    everything = sum(totals)
    return {
        "version": version,
        "lane": lane(version.slots, totals, ticks, version.name or "unknown"),
        "share": sum(version.slots.values()) / everything if everything else 0.0,
        "first": axis.since + version.first_slot * axis.width,
        "last": min(axis.since + (version.last_slot + 1) * axis.width, axis.until),
        "is_in_use": version.last_slot >= axis.count - 2,
        "total": version.against_before(),
        "cells": [
            (
                version.against_before(model),
                failures_url(selection, provider=model[0], model=model[1], **named),
                model[1],
            )
            for model in models
        ],
        "new": [
            (group, title_of(group.kind, group.error_type, group.pointer, group.detail, group.node))
            for group in groups[:MOST_NEW]
        ],
        "failures_url": failures_url(selection, **named),
    }
