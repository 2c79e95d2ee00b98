"""Queries of reports: models, failures, incidents and sources in a period.

Counts come from rollups: whole hours, minutes at the edges of local days while they are kept,
whole days beyond a year. The number of statements is constant.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import median
from zoneinfo import ZoneInfo

from django.db.models import Prefetch, Q, Sum
from django.http import QueryDict
from django.urls import reverse

from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_models import Incident, Transition
from diagnostics.alerting.statuses import StatusSet, read_statuses, verdict_within
from diagnostics.analysis.series import ModelKey
from diagnostics.failures.counts import GroupQuestion, latest_groups
from diagnostics.failures.groups import MOST_FRESH, newest_groups
from diagnostics.failures.models import FailureGroup, GroupChange
from diagnostics.ingest.models import KeyMinute
from diagnostics.prices.models import prices_of
from diagnostics.prices.prices import retry_spend
from diagnostics.queries.models import BY_MODEL
from diagnostics.queries.series import (
    BASELINE_COUNTED,
    BASELINE_SPAN,
    COUNTED,
    read_counts,
    window_for,
)
from diagnostics.queries.sums import Question, Slots, sum_rollups
from diagnostics.reports.curves import slot_count, slot_width
from diagnostics.reports.document import (
    LONGEST_TEXT,
    AdviceFigures,
    Degradation,
    GroupFigures,
    GroupNews,
    IncidentFigures,
    IncidentInPeriod,
    ModelFigures,
    QualityFigures,
    ReportDocument,
    add_up,
    name_of,
)
from diagnostics.reports.periods import ReportPeriod
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import Selection, read_selection
from diagnostics.store.windows import TimeWindow
from diagnostics.verdict.verdicts import Verdict
from diagnostics.verdict.wording import cause_words

BEYOND = (
    "The view has filters on single events or kinds; figures here are of all runs "
    "that its other filters keep."
)
NOTHING = (0,) * len(COUNTED)
SAME = (
    *("runs", "degraded", "repaired", "unchecked", "first_attempts", "calls", "calls_failed"),
    *("cancelled", "retry_tokens"),
)
"""Counts that a report calls as they are called everywhere."""
SENT = ("events", "invalid", "succeeded", "runs", "degraded")
SILENT = timedelta(days=1)
MOST_GROUPS, MOST_ADVICE = 5, 3
LISTED_INCIDENTS, MOST_INCIDENTS = 8, 500
# Resolutions that name no cause.
NO_CAUSES = (Incident.Cause.RECOVERED, Incident.Cause.NEW_USUAL_LEVEL, Incident.Cause.OTHER)
# Few projects have more models; a report names the worst.
MOST_MODELS = 200


@dataclass(frozen=True, slots=True)
class ReportScope:
    """The scope of a report's queries: a project, a period and the one before, terms."""

    project_id: int
    since: datetime
    until: datetime
    before: datetime
    terms: Sequence[Term]
    now: datetime

    def window(self, since: datetime, until: datetime) -> TimeWindow:
        """Return the window of a time range, as fine as rollups are kept."""
        return window_for(since, until, self.terms, self.now)


@dataclass(frozen=True, slots=True)
class ReportSubject:
    """The subject of a report, regardless of its reader: equal ones share a report."""

    project: Project
    title: str
    query: str
    cadence: str
    period: ReportPeriod


def summarise(subject: ReportSubject, now: datetime) -> ReportDocument:
    """Return the document of a period; the number of statements is constant."""
    period, project = subject.period, subject.project
    selection = _selection(subject)
    before = period.before().since
    scope = ReportScope(project.pk, period.since, period.until, before, selection.rollup_terms, now)
    at_end = read_statuses(project.pk, selection, now)
    verdict = at_end.verdict
    if scope.terms or not verdict.since:
        # Nothing degrades at the end, or it is shared with what the terms leave out.
        verdict = verdict_within(project.pk, selection, now)
    degrading = [cause for cause in map(_degradation, verdict.causes) if cause]
    incidents = _incidents_of(scope)
    dated = [row for row in incidents if row.fired_at < period.until]
    models = [
        model.model_copy(update=_incident_fields(key, verdict, dated))
        for key, model in _read_models(scope, selection, at_end).items()
    ]
    groups, more_groups = _read_groups(scope)
    page = f"{reverse('now')}?{selection.query()}"
    has_kind = any(term.field in ("kind", "outcome") for term in selection.terms)
    return ReportDocument(
        project=name_of(project.name),
        title=name_of(subject.title),
        cadence=subject.cadence,
        zone=period.zone.key,
        since=period.since,
        until=period.until,
        first=period.first,
        last=period.last,
        slot_seconds=int(slot_width(period.until - period.since).total_seconds()),
        url=page,
        total=add_up(models, page),
        models=models[:MOST_MODELS],
        degradation=degrading[0] if degrading else None,
        others=degrading[1:],
        groups=groups,
        more_groups=more_groups,
        advice=[
            AdviceFigures(
                text=name_of(advice.text, LONGEST_TEXT),
                evidence=name_of(advice.evidence, LONGEST_TEXT),
                url=f"{reverse('failures')}?{selection.query()}",
            )
            for advice in verdict.advice[:MOST_ADVICE]
        ],
        incidents=_incident_figures(incidents, dated, period.zone),
        quality=_read_quality(scope),
        remarks=[BEYOND] if selection.needs_events or has_kind else [],
    )


def _selection(subject: ReportSubject) -> Selection:
    params = QueryDict(subject.query).dict()
    filters = {name: str(value) for name, value in params.items()}
    period = subject.period
    return replace(
        read_selection(filters),
        begin=period.since.astimezone(UTC),
        end=period.until.astimezone(UTC),
        zone=period.zone.key,
    )


def _degradation(verdict: Verdict) -> Degradation | None:
    rate = verdict.rate
    if verdict.since is None or rate is None:
        return None
    return Degradation(
        subject=name_of(verdict.name),
        since=verdict.since,
        bad=rate.bad,
        total=rate.total,
        noun=rate.noun,
        baseline=rate.baseline,
        kind=verdict.finding.top_kind,
        is_mostly=rate.is_mostly,
        cause=name_of(cause_words(verdict.finding), LONGEST_TEXT),
    )


def _incident_fields(
    key: ModelKey, verdict: Verdict, incidents: Sequence[Incident]
) -> Mapping[str, datetime | int | None]:
    """Return a model's onset by the verdict, and its number of incidents."""
    since = [
        cause.since
        for cause in verdict.causes
        if cause.since and any((series.provider, series.model) == key for series in cause.touched)
    ]
    touching = [
        row
        for row in incidents
        if any(
            "model" in part.slice and (part.slice.get("provider"), part.slice["model"]) == key
            for part in row.slices.all()
        )
    ]
    return {"since": min(since, default=None), "incidents": len(touching)}


def _read_models(
    scope: ReportScope, selection: Selection, at_end: StatusSet
) -> Mapping[ModelKey, ModelFigures]:
    """Return every model that was called, or ended a run, in the period or the one before."""
    sums = _sums(scope, scope.since, scope.until, COUNTED)
    before = _sums(scope, scope.before, scope.since, BASELINE_COUNTED)
    since = min(scope.before, scope.since - BASELINE_SPAN)
    baseline = _sums(scope, since, scope.since, BASELINE_COUNTED)
    curves = _curves(scope)
    window = scope.window(scope.since, scope.until)
    spent = retry_spend(scope.project_id, prices_of(scope.project_id), window, scope.terms)
    # The state of a model is that of its worst series.
    worst_last = reversed(at_end.kept_by(selection))
    states = {(status.key.provider, status.key.model): status.state for status in worst_last}
    figures = {}
    for key in sorted({**sums, **before}, key=lambda key: -sums.get(key, (0,))[0]):
        counts = read_counts(sums.get(key, NOTHING))
        runs_before, degraded_before = before.get(key, (0, 0))
        runs_usual, degraded_usual = baseline.get(key, (0, 0))
        provider, model = key
        query = selection.query_for(provider=provider, model=model)
        figures[key] = ModelFigures(
            name=_model_name(key),
            url=f"{reverse('now')}?{query}",
            **{name: getattr(counts, name) for name in SAME},
            ok_first=counts.first_pass,
            retry_ms=counts.retry_milliseconds,
            retry_usd=spent[key].money_usd if key in spent else None,
            runs_before=runs_before,
            degraded_before=degraded_before,
            runs_usual=runs_usual,
            degraded_usual=degraded_usual,
            state_at_end=states.get(key),
            curve=curves.get(key, []),
        )
    return figures


def _read_groups(scope: ReportScope) -> tuple[list[GroupFigures], int]:
    """Return new, regressed and resolved groups (at most 5 of each), and how many more."""
    newest = newest_groups(scope.project_id, scope.since, scope.until, scope.terms)
    shown = sorted(newest[:MOST_GROUPS], key=lambda row: not row.is_regressed)
    resolved = _resolved_groups(scope)
    rows: list[tuple[GroupNews, FailureGroup, Mapping[ModelKey, int], int]] = [
        ("regressed" if row.is_regressed else "new", row.group, row.models, row.seen)
        for row in shown
    ]
    rows += [("resolved", group, {}, 0) for group in resolved[:MOST_GROUPS]]
    figures = [
        GroupFigures(
            state=state,
            text=_group_text(group, models),
            seen=count,
            url=reverse("failure", args=[group.pk]),
        )
        for state, group, models, count in rows
    ]
    return figures, len(newest) + len(resolved) - len(figures)


def _resolved_groups(scope: ReportScope) -> list[FailureGroup]:
    """Return the groups that were resolved in the period and ever seen under the terms."""
    condition = Q(
        project_id=scope.project_id,
        state=FailureGroup.State.RESOLVED,
        changes__kind=GroupChange.Kind.RESOLVED,
        changes__at__gte=scope.since,
        changes__at__lt=scope.until,
    )
    groups = FailureGroup.objects.filter(condition).distinct().order_by("-last_seen", "-pk")
    resolved = list(groups[:MOST_FRESH])
    if not resolved or not scope.terms:
        return resolved
    first_seen, ids = min(group.first_seen for group in resolved), [group.pk for group in resolved]
    question = GroupQuestion(first_seen, scope.until, scope.terms, ids=ids)
    return [group for group, _ in latest_groups(scope.project_id, question, MOST_FRESH)]


def _incidents_of(scope: ReportScope) -> Sequence[Incident]:
    """Return the incidents under the terms that were open in the period or are, newest first."""
    rows = Incident.objects.filter(
        Q(cleared_at__isnull=True) | Q(cleared_at__gte=scope.since, fired_at__lt=scope.until),
        project_id=scope.project_id,
    )
    manual = Prefetch("transitions", Transition.objects.filter(kind=Transition.Kind.RESOLVED))
    related = rows.select_related("resolved_by").prefetch_related("slices", manual)
    latest = related.order_by("-fired_at", "-pk")[:MOST_INCIDENTS]
    return [row for row in latest if row.is_kept_by(scope.terms)]


def _incident_figures(
    rows: Sequence[Incident], dated: Sequence[Incident], zone: ZoneInfo
) -> IncidentFigures:
    noticed = [
        (row.acknowledged_at - row.fired_at).total_seconds() for row in dated if row.acknowledged_at
    ]
    cleared = [(row.cleared_at - row.fired_at).total_seconds() for row in dated if row.cleared_at]
    causes = [row.resolution_cause for row in dated if row.resolution_cause]
    return IncidentFigures(
        count=len(dated),
        open=len(rows) - len(cleared),
        acknowledged=len(noticed),
        acknowledge_seconds=median(noticed) if noticed else None,
        clear_seconds=median(cleared) if cleared else None,
        judged=len(causes),
        false_alarms=causes.count(Incident.Cause.FALSE_ALARM),
        entries=[_incident_entry(row, zone) for row in rows[:LISTED_INCIDENTS]],
        url=reverse("incidents"),
    )


def _incident_entry(row: Incident, zone: ZoneInfo) -> IncidentInPeriod:
    # That given by a person, else by the verdict.
    given, cause = row.resolution_cause, row.cause_words(zone)
    if given and given not in NO_CAUSES:
        cause = f"Cause: {Incident.Cause(given).label}"
    ending = ""
    if row.cleared_at and given == Incident.Cause.NEW_USUAL_LEVEL:
        ending = "new baseline"
    elif row.cleared_at:
        is_manual = row.transitions.all()
        ending = f"by {row.resolved_by or 'an API key'}" if is_manual else "automatically"
    return IncidentInPeriod(
        title=name_of(row.title),
        severity=row.severity,
        cause=name_of(cause or "No cause found", LONGEST_TEXT),
        onset=row.onset,
        ended_at=row.cleared_at,
        ending=ending,
        url=reverse("incident", args=[row.pk]),
    )


def _read_quality(scope: ReportScope) -> QualityFigures:
    sent = _sources(scope, scope.since, scope.until)
    before = _sources(scope, scope.before, scope.since)
    recent = _sources(scope, max(scope.since, scope.until - SILENT), scope.until)
    known = {name for name, row in {**before, **sent}.items() if row[0]}
    rejected = KeyMinute.objects.filter(
        project_id=scope.project_id, minute__gte=scope.since, minute__lt=scope.until
    ).aggregate(doubles=Sum("duplicate"), bad=Sum("invalid"), refused=Sum("rejected"))
    return QualityFigures(
        events=sum(row[0] for row in sent.values()),
        rejected=(rejected["bad"] or 0) + (rejected["refused"] or 0),
        duplicates=rejected["doubles"] or 0,
        sources=sum(bool(row[0]) for row in sent.values()),
        silent=sorted(name_of(name) for name in known if name not in recent or not recent[name][0]),
        without_successes=sorted(
            name_of(name)
            for name, (_, invalid, succeeded, runs, degraded) in sent.items()
            if (invalid or degraded) and not succeeded and runs == degraded
        ),
        url=reverse("ingest"),
    )


def _sums(
    scope: ReportScope, since: datetime, until: datetime, measures: Sequence[str]
) -> dict[ModelKey, Sequence[int]]:
    question = Question(scope.window(since, until), BY_MODEL, measures, scope.terms)
    rows = sum_rollups(scope.project_id, question)
    return {(row[0], row[1]): row[2:] for row in rows if any(row[2:])}


def _sources(
    scope: ReportScope, since: datetime, until: datetime
) -> dict[str | None, Sequence[int]]:
    question = Question(scope.window(since, until).in_hours, ("source",), SENT, scope.terms)
    return {row[0]: row[1:] for row in sum_rollups(scope.project_id, question)}


def _curves(scope: ReportScope) -> Mapping[ModelKey, list[tuple[int, int]]]:
    span = scope.until - scope.since
    slots = Slots(scope.since, slot_width(span), slot_count(span))
    window = scope.window(scope.since, scope.until)
    question = Question(window, BY_MODEL, BASELINE_COUNTED, scope.terms, slots)
    curves: dict[ModelKey, list[tuple[int, int]]] = defaultdict(lambda: [(0, 0)] * slots.count)
    for provider, model, slot, runs, degraded in sum_rollups(scope.project_id, question):
        curves[provider, model][slot] = (runs, degraded)
    return curves


def _group_text(group: FailureGroup, models: Mapping[ModelKey, int]) -> str:
    at = f" at {name_of(group.pointer, 80)}" if group.pointer else ""
    names = [_model_name(key) for key in models]
    model = f", {names[0]}" if names else ""
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    title = group.error_type or group.kind
    return f"{name_of(title).replace('_', ' ')}{at}, node {name_of(group.node)}{model}{others}"


def _model_name(key: ModelKey) -> str:
    return name_of("/".join(part for part in key if part))
