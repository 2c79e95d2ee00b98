"""One evaluation of every slice of some rules: what the detectors say, and how slices stand then.

Reads counts and states, writes nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from time import monotonic
from typing import NamedTuple
from uuid import UUID

import structlog

from diagnostics.alerting.counts import (
    EventsUncountableError,
    KnownSeries,
    SeriesCounts,
    known_series,
    read_counts,
    read_event_counts,
)
from diagnostics.alerting.rules import RuleDefinition
from diagnostics.alerting.saved_states import (
    Key,
    SavedState,
    SliceEvaluation,
    read_kept,
    standing_of,
)
from diagnostics.alerting.series_detectors import feed_slices
from diagnostics.alerting.signals import (
    GONE,
    UNJUDGED,
    DetectorEvaluation,
    Measured,
    Slice,
    judge,
    judge_silence,
    slice_key,
    trailing_window,
    windows_of,
)
from diagnostics.alerting.sources import SourceQuestion, read_source
from diagnostics.alerting.states import ON, DetectorSignal, advance
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import keeps_all

logger = structlog.get_logger(__name__)

MOST_SLICES = 1_000
DATA_SECONDS = 300
"""That a slice has calls is noted once in so many seconds."""

EVENTS_SECONDS = 2.0
"""In which a project's events of the last six hours are counted for all rules on versions."""
MOST_PROJECTS = 200
"""Projects whose slices a process remembers."""


class Group(NamedTuple):
    values: Slice
    key: UUID
    series: Sequence[int]


Asked = tuple[tuple[Term, ...], tuple[str, ...]]
_groups_by_project: dict[int, tuple[tuple[int, int], dict[Asked, list[Group]]]] = {}


class ProjectMinute(NamedTuple):
    """What one evaluation of a project goes by: its series, their counts, and how slices stood.

    `judged` is what the detectors of series say, by their ids.
    """

    project_id: int
    slot: datetime
    known: Mapping[Key, SavedState]
    series: Sequence[KnownSeries]
    counted: SeriesCounts
    judged: Mapping[int, DetectorEvaluation]
    is_complete: bool = False


def evaluate_slices(
    project_id: int,
    rules: Sequence[RuleDefinition],
    slot: datetime,
    judged: Mapping[int, DetectorEvaluation],
    *,
    is_complete: bool = False,
) -> list[SliceEvaluation]:
    """Evaluate every slice of the rules as of the minute that begins at `slot`.

    A change of a series is what its detector says. Slices seen for the first time have a row
    that is not saved yet; those without a call lately are only seen when they are known, or all
    are wanted (`is_complete`).
    """
    known, series = read_kept(project_id), known_series(project_id)
    plain = [rule for rule in rules if not rule.is_by_version]
    counted = read_counts(project_id, slot, *_columns_and_windows(plain))
    minute = ProjectMinute(project_id, slot, known, series, counted, judged, is_complete)
    seen = [evaluation for rule in plain for evaluation in _slices(minute, rule)]
    if len(plain) < len(rules):
        seen += _slices_by_version(minute, [rule for rule in rules if rule.is_by_version])
    own = [row for row in seen if row.rule.detector == "change" and not row.rule.is_of_series]
    seen += _ended_slices(minute, rules, seen)
    feed_slices(project_id, slot, own, counted, known.values(), len(own))
    for evaluation in seen:
        quiet_since = evaluation.last_data_at or evaluation.row.since
        is_silent = (slot - quiet_since).total_seconds() >= evaluation.rule.no_data_seconds
        if is_silent and evaluation.result is not GONE:
            evaluation.result = replace(evaluation.result, said=DetectorSignal.NO_DATA)
        evaluation.standing, evaluation.happened = advance(
            evaluation.at, standing_of(evaluation.row), evaluation.result.said, evaluation.rule
        )
    return seen


def _columns_and_windows(rules: Iterable[RuleDefinition]) -> tuple[set[str], set[int]]:
    measuring = [(rule, measured) for rule in rules if (measured := rule.measured)]
    columns = {name for _, measured in measuring for name in measured.columns} or {"events"}
    windows_used = (windows_of(rule.detector, rule.limits) for rule, _ in measuring)
    windows = {seconds for seconds_of in windows_used for seconds in seconds_of}
    return columns, windows


def _slices_by_version(
    minute: ProjectMinute, rules: Iterable[RuleDefinition]
) -> Iterator[SliceEvaluation]:
    """Look by single events, which a project has two seconds for; beyond that nothing is told.

    A slice that was not looked at stays as it stands.
    """
    alike: dict[tuple[Term, ...], list[RuleDefinition]] = defaultdict(list)
    for rule in rules:
        alike[rule.terms].append(rule)
    deadline = monotonic() + EVENTS_SECONDS
    for terms, own_rules in alike.items():
        columns, windows = _columns_and_windows(own_rules)
        try:
            counted = read_event_counts(
                minute.project_id, minute.slot, minute.series, columns, windows, terms, deadline
            )
        except EventsUncountableError:
            skipped = [rule.id for rule in own_rules]
            logger.warning("rules_not_evaluated", project=minute.project_id, rules=skipped)
            continue
        for rule in own_rules:
            yield from _slices(minute._replace(counted=counted), rule)


def _slices(minute: ProjectMinute, rule: RuleDefinition) -> Iterator[SliceEvaluation]:
    measured = rule.measured
    if measured is None:
        yield from _from_source(minute, rule)
        return
    for group in _group(minute, rule):
        evaluation = _evaluation_of(minute, rule, group)
        _judge(evaluation, measured, minute)
        yield evaluation


def _group(minute: ProjectMinute, rule: RuleDefinition) -> list[Group]:
    """Leave out slices without any call, unless they are known; and series without a detector."""
    groups = _groups_of(minute.project_id, rule, minute.series)
    if rule.is_of_series:
        states = (row for row in minute.known.values() if row.rule_id == rule.id)
        on = {row.key for row in states if standing_of(row).state in ON}
        return [group for group in groups if group.series[0] in minute.judged or group.key in on]
    return [
        group
        for group in groups
        if minute.is_complete
        or not group.values
        or any(series in minute.counted.cuts for series in group.series)
        or (rule.id, group.key) in minute.known
    ][:MOST_SLICES]


def _groups_of(project_id: int, rule: RuleDefinition, series: Sequence[KnownSeries]) -> list[Group]:
    """Put series into slices; remembered until the project has another series."""
    signature = (len(series), series[-1].id if series else 0)
    kept = _groups_by_project.get(project_id)
    if kept is None or kept[0] != signature:
        if len(_groups_by_project) >= MOST_PROJECTS:
            _groups_by_project.clear()
        kept = _groups_by_project[project_id] = (signature, {})
    key = (rule.terms, tuple(rule.group_by))
    groups = kept[1].get(key)
    if groups is None:
        groups = kept[1][key] = _divide(rule, series)
    return groups


def _divide(rule: RuleDefinition, series: Sequence[KnownSeries]) -> list[Group]:
    ids: dict[tuple[str | None, ...], list[int]] = defaultdict(list)
    if not rule.group_by:
        ids[()] = []
    for row in series:
        if not rule.terms or keeps_all(rule.terms, row.values):
            ids[tuple(row.values[name] for name in rule.group_by)].append(row.id)
    named = ((dict(zip(rule.group_by, values, strict=True)), own) for values, own in ids.items())
    return [Group(values, slice_key(values), own) for values, own in named]


def _ended_slices(
    minute: ProjectMinute, rules: Iterable[RuleDefinition], seen: Iterable[SliceEvaluation]
) -> list[SliceEvaluation]:
    """Clear slices that fire and are none of their rule, or of its source, any more."""
    on = {key: row for key, row in minute.known.items() if row.state in ON}
    if not on:
        return []
    for evaluation in seen:
        on.pop((evaluation.rule.id, evaluation.row.key), None)
    # A source that is silent for too long to be listed is silent all the same.
    by_id = {rule.id: rule for rule in rules if rule.detector != "absent"}
    at = minute.slot.timestamp()
    return [
        SliceEvaluation(rule, {}, row, at, GONE, last_data_at=row.last_data_at)
        for row in on.values()
        if (rule := by_id.get(row.rule_id))
        and not (
            rule.measured
            and row.key
            in {group.key for group in _groups_of(minute.project_id, rule, minute.series)}
        )
    ]


def _evaluation_of(minute: ProjectMinute, rule: RuleDefinition, group: Group) -> SliceEvaluation:
    row = minute.known.get((rule.id, group.key))
    row = row or SavedState(rule.id, group.key, minute.slot, rule.version)
    at = minute.slot.timestamp()
    evaluation = SliceEvaluation(rule, group.values, row, at, series=group.series)
    evaluation.last_data_at = row.last_data_at
    return evaluation


def _judge(evaluation: SliceEvaluation, measured: Measured, minute: ProjectMinute) -> None:
    counted, rule = minute.counted, evaluation.rule
    k, n = [0] * len(counted.seconds), [0] * len(counted.seconds)
    for series_id in evaluation.series:
        for cut, (bad, calls) in counted.by_cut(series_id, measured):
            k[cut] += bad
            n[cut] += calls
    if n[0]:
        _note_data(evaluation, minute.slot)
    if rule.is_of_series:
        evaluation.result = minute.judged.get(evaluation.series[0], UNJUDGED)
    elif rule.detector != "change":
        window = trailing_window(counted.seconds, k, n)
        evaluation.result = judge(rule.detector, rule.limits, window, is_latency=rule.is_latency)


def _note_data(evaluation: SliceEvaluation, slot: datetime) -> None:
    last = evaluation.row.last_data_at
    if last is None or (slot - last).total_seconds() >= DATA_SECONDS:
        evaluation.last_data_at = slot


def _from_source(minute: ProjectMinute, rule: RuleDefinition) -> Iterator[SliceEvaluation]:
    since = minute.slot - timedelta(seconds=rule.limits.seconds)
    end = minute.slot + timedelta(minutes=1)
    asked = SourceQuestion(minute.project_id, since, end, rule.terms)
    for values, number in read_source(rule.signal, asked)[:MOST_SLICES]:
        evaluation = _evaluation_of(minute, rule, Group(values, slice_key(values), ()))
        _note_data(evaluation, minute.slot)
        if rule.detector == "absent":
            evaluation.result = judge_silence(rule.limits, number)
        else:
            # The same number within any time.
            window = trailing_window((0,), (number,), (number,))
            evaluation.result = judge(rule.detector, rule.limits, window)
        yield evaluation
