"""Reads of reports: models, kinds of failure, incidents and sources in a period.

Counts are by rollups: whole hours, minutes at the edges of local days while minutes are
kept, whole days beyond a year. The number of statements does not grow with what is found.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from statistics import median

from django.db.models import Q, Sum
from django.http import QueryDict
from django.urls import reverse

from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_facts import cause_of
from diagnostics.alerting.incident_models import Incident
from diagnostics.failures.groups import newest_groups
from diagnostics.failures.models import FailureGroup, GroupChange
from diagnostics.ingest.models import KeyMinute
from diagnostics.prices.prices import prices_of, retry_spend
from diagnostics.queries.events import BASELINE_COUNTED, BASELINE_SPAN, COUNTED, window_for
from diagnostics.queries.matrix import ModelKey
from diagnostics.queries.models import BY_MODEL
from diagnostics.queries.sums import Question, Slots, sum_rollups
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
    name_of,
)
from diagnostics.reports.periods import ReportPeriod
from diagnostics.reports.rendering import slot_count, slot_width
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import Selection, read_selection
from diagnostics.store.windows import TimeWindow
from diagnostics.verdict.statuses import StatusSet, read_statuses
from diagnostics.verdict.verdicts import Verdict, verdict_of
from diagnostics.verdict.wording import cause_words

BEYOND = (
    "The view has filters on single events or kinds; figures here are of all runs "
    "that its other filters keep."
)
NOTHING = (0,) * len(COUNTED)
SENT = ("events", "invalid", "succeeded", "runs", "degraded")
SILENT = timedelta(days=1)
MOST_GROUPS = 5
MOST_ADVICE = 3
LISTED_INCIDENTS, MOST_INCIDENTS = 8, 500
# What a person may say of an incident without saying what it came from.
NO_CAUSES = (Incident.Cause.RECOVERED, Incident.Cause.NEW_USUAL_LEVEL, Incident.Cause.OTHER)
# A project has hardly more models; a report names the worst.
MOST_MODELS = 200


@dataclass(frozen=True, slots=True)
class ReportScope:
    """What a report is about: a project, a period and the one before, conditions."""

    project_id: int
    since: datetime
    until: datetime
    before: datetime
    terms: Sequence[Term]
    now: datetime

    def window(self, since: datetime, until: datetime) -> TimeWindow:
        """Return the rollup rows of a stretch, as fine as they are kept."""
        return window_for(since, until, self.terms, self.now)


@dataclass(frozen=True, slots=True)
class ReportSubject:
    """What a report is about, whoever reads it: equal ones are made once."""

    project: Project
    title: str
    query: str
    cadence: str
    period: ReportPeriod


def summarise(subject: ReportSubject, now: datetime) -> ReportDocument:
    """Read what is to be said of a period; the number of statements is constant."""
    period, project = subject.period, subject.project
    selection = _selection(subject)
    before = period.before().since
    asked = ReportScope(project.pk, period.since, period.until, before, selection.rollup_terms, now)
    at_end = read_statuses(project.pk, selection, now)
    verdict = _verdict(asked, selection, at_end)
    degrading = _degradations(verdict)
    incidents = _incidents_of(asked)
    models = [
        model.model_copy(update=_named(key, verdict, incidents))
        for key, model in _read_models(asked, selection, at_end).items()
    ]
    groups, more = _read_groups(asked)
    page = f"{reverse('now')}?{selection.query()}"
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
        total=_add_up(models, page),
        models=models,
        degradation=degrading[0] if degrading else None,
        others=degrading[1:],
        groups=groups,
        more_groups=more,
        advice=_advice_of(verdict, f"{reverse('failures')}?{selection.query()}"),
        incidents=_incident_figures(incidents),
        quality=_read_quality(asked),
        remarks=[BEYOND] if _is_finer(selection) else [],
    )


def _is_finer(selection: Selection) -> bool:
    """Whether a report's figures leave out a part of the filter."""
    return selection.needs_events or any(
        term.field in ("kind", "outcome") for term in selection.terms
    )


def _advice_of(verdict: Verdict, url: str) -> list[AdviceFigures]:
    return [
        AdviceFigures(
            text=name_of(advice.text, LONGEST_TEXT),
            evidence=name_of(advice.evidence, LONGEST_TEXT),
            url=url,
        )
        for advice in verdict.advice[:MOST_ADVICE]
    ]


def _selection(subject: ReportSubject) -> Selection:
    """Read the view's filters; its range gives way to the period."""
    asked = QueryDict(subject.query).dict()
    filters = {name: str(value) for name, value in asked.items()}
    period = subject.period
    return replace(
        read_selection(filters),
        begin=period.since.astimezone(UTC),
        end=period.until.astimezone(UTC),
        zone=period.zone.key,
    )


def _verdict(asked: ReportScope, selection: Selection, at_end: StatusSet) -> Verdict:
    """Return what degrades when the period ends, as all places say it, else that of its range."""
    if at_end.verdict.since and not asked.terms:
        return at_end.verdict
    return verdict_of(asked.project_id, selection, asked.now)


def _degradations(verdict: Verdict) -> list[Degradation]:
    """Return what degrades, the gravest cause first."""
    return [told for one in (verdict, *verdict.others) if (told := _degradation(one))]


def _degradation(verdict: Verdict) -> Degradation | None:
    rate = verdict.rate
    if verdict.state != "degrading" or verdict.since is None or rate is None:
        return None
    return Degradation(
        subject=name_of(verdict.name),
        since=verdict.since,
        bad=rate.bad,
        total=rate.total,
        noun=rate.noun,
        baseline=rate.baseline,
        kind=verdict.finding.top_kind,
        cause=name_of(cause_words(verdict.finding), LONGEST_TEXT),
    )


def _named(
    key: ModelKey, verdict: Verdict, incidents: Sequence[Incident]
) -> Mapping[str, datetime | int | None]:
    """Say of a model since when the verdict names it, and how many incidents it had."""
    causes = [one for one in (verdict, *verdict.others) if one.state == "degrading"]
    since = [
        one.since
        for one in causes
        if one.since and any((who.provider, who.model) == key for who in one.touched)
    ]
    slices = [{_model_of(one.slice) for one in row.slices.all()} for row in incidents]
    return {"since": min(since, default=None), "incidents": sum(key in one for one in slices)}


def _model_of(values: Mapping[str, str | None]) -> ModelKey | None:
    return (values.get("provider"), values["model"]) if "model" in values else None


def _read_models(
    asked: ReportScope, selection: Selection, at_end: StatusSet
) -> Mapping[ModelKey, ModelFigures]:
    """Return every model that ended a run in the period or the one before."""
    sums = _sums(asked, asked.since, asked.until, COUNTED)
    before = _sums(asked, asked.before, asked.since, BASELINE_COUNTED)
    since = min(asked.before, asked.since - BASELINE_SPAN)
    usual = _sums(asked, since, asked.since, BASELINE_COUNTED)
    curves = _curves(asked)
    window = asked.window(asked.since, asked.until)
    spent = retry_spend(asked.project_id, prices_of(asked.project_id), window, asked.terms)
    # The state of a model is that of its worst series.
    worst_last = reversed(at_end.kept_by(selection))
    states = {(one.key.provider, one.key.model): one.state for one in worst_last}
    found = {}
    for key in sorted({**sums, **before}, key=lambda key: -sums.get(key, (0,))[0])[:MOST_MODELS]:
        runs, degraded, ok_first, repaired, sent, answered, retry_ms = sums.get(key, NOTHING)
        runs_before, degraded_before = before.get(key, (0, 0))
        runs_usual, degraded_usual = usual.get(key, (0, 0))
        provider, model = key
        query = selection.query_for(provider=provider, model=model)
        found[key] = ModelFigures(
            name=_model_name(key),
            url=f"{reverse('now')}?{query}",
            runs=runs,
            degraded=degraded,
            ok_first=ok_first,
            repaired=repaired,
            retry_tokens=sent + answered,
            retry_ms=retry_ms,
            retry_usd=spent[key].money_usd if key in spent else None,
            runs_before=runs_before,
            degraded_before=degraded_before,
            runs_usual=runs_usual,
            degraded_usual=degraded_usual,
            state_at_end=states.get(key),
            curve=curves.get(key, []),
        )
    return found


def _add_up(models: Sequence[ModelFigures], url: str) -> ModelFigures:
    """Return all models together."""
    apart = {"name", "url", "curve", "state_at_end", "since", "incidents", "retry_usd"}
    fields = [name for name in ModelFigures.model_fields if name not in apart]
    sums = {name: sum(getattr(model, name) for model in models) for name in fields}
    curves = [model.curve for model in models if model.curve]
    added = [
        (sum(runs for runs, _ in slot), sum(degraded for _, degraded in slot))
        for slot in zip(*curves, strict=True)
    ]
    known = [model.retry_usd for model in models if model.retry_usd is not None]
    money = sum(known, Decimal(0)) if known else None
    return ModelFigures(name="all models", url=url, curve=added, retry_usd=money, **sums)


def _read_groups(asked: ReportScope) -> tuple[list[GroupFigures], int]:
    """Return what began, came back or was resolved (5 of each at most), and how many more."""
    fresh = newest_groups(asked.project_id, asked.since, asked.until, MOST_GROUPS + 1, asked.terms)
    shown = sorted(fresh[:MOST_GROUPS], key=lambda row: not row.is_regressed)
    resolved = _resolved(asked)
    rows: list[tuple[GroupNews, FailureGroup, Mapping[ModelKey, int], int]] = [
        ("regressed" if row.is_regressed else "new", row.group, row.models, row.seen)
        for row in shown
    ]
    rows += [("resolved", group, {}, 0) for group in resolved[:MOST_GROUPS]]
    figures = [
        GroupFigures(
            state=state,
            text=_group_text(group, models),
            seen=seen,
            url=reverse("failure", args=[group.pk]),
        )
        for state, group, models, seen in rows
    ]
    return figures, len(fresh) + len(resolved) - len(figures)


def _incidents_of(asked: ReportScope) -> Sequence[Incident]:
    """Return the incidents that were open in the period, newest first: all of the project's."""
    rows = Incident.objects.filter(
        Q(cleared_at__isnull=True) | Q(cleared_at__gte=asked.since),
        project_id=asked.project_id,
        fired_at__lt=asked.until,
    )
    related = rows.select_related("resolved_by").prefetch_related("slices")
    return list(related.order_by("-fired_at", "-pk")[:MOST_INCIDENTS])


def _incident_figures(rows: Sequence[Incident]) -> IncidentFigures:
    noticed = [
        (row.acknowledged_at - row.fired_at).total_seconds() for row in rows if row.acknowledged_at
    ]
    cleared = [(row.cleared_at - row.fired_at).total_seconds() for row in rows if row.cleared_at]
    causes = [row.resolution_cause for row in rows if row.resolution_cause]
    return IncidentFigures(
        count=len(rows),
        open=len(rows) - len(cleared),
        acknowledged=len(noticed),
        acknowledge_seconds=median(noticed) if noticed else None,
        clear_seconds=median(cleared) if cleared else None,
        judged=len(causes),
        false_alarms=causes.count(Incident.Cause.FALSE_ALARM),
        entries=[_incident_entry(row) for row in rows[:LISTED_INCIDENTS]],
        url=reverse("incidents"),
    )


def _incident_entry(row: Incident) -> IncidentInPeriod:
    return IncidentInPeriod(
        title=name_of(row.title),
        severity=row.severity,
        cause=name_of(_cause_told(row) or "No cause found", LONGEST_TEXT),
        onset=row.onset,
        ended_at=row.cleared_at,
        ending=_ending(row),
        url=reverse("incident", args=[row.pk]),
    )


def _cause_told(row: Incident) -> str:
    """Return what a person has said that it was, else what the verdict says."""
    told = row.resolution_cause
    if not told or told in NO_CAUSES:
        return cause_of(row)
    return f"Cause: {Incident.Cause(told).label}"


def _ending(row: Incident) -> str:
    if row.cleared_at is None:
        return ""
    if row.resolution_cause == Incident.Cause.NEW_USUAL_LEVEL:
        return "new baseline"
    return f"by {row.resolved_by}" if row.resolved_by else "automatically"


def _read_quality(asked: ReportScope) -> QualityFigures:
    """Tell how much was sent, refused and sent twice, and who fell silent."""
    sent = _sources(asked, asked.since, asked.until)
    before = _sources(asked, asked.before, asked.since)
    lately = _sources(asked, max(asked.since, asked.until - SILENT), asked.until)
    known = {name for name, row in {**before, **sent}.items() if row[0]}
    refused = KeyMinute.objects.filter(
        project_id=asked.project_id, minute__gte=asked.since, minute__lt=asked.until
    ).aggregate(doubles=Sum("duplicate"), bad=Sum("invalid"), refused=Sum("rejected"))
    return QualityFigures(
        events=sum(row[0] for row in sent.values()),
        rejected=(refused["bad"] or 0) + (refused["refused"] or 0),
        duplicates=refused["doubles"] or 0,
        sources=sum(bool(row[0]) for row in sent.values()),
        silent=sorted(name_of(name) for name in known if name not in lately or not lately[name][0]),
        without_successes=sorted(name_of(name) for name, row in sent.items() if _fails_only(row)),
        url=reverse("ingest"),
    )


def _fails_only(row: Sequence[int]) -> bool:
    _, invalid, succeeded, runs, degraded = row
    return bool(invalid or degraded) and not succeeded and runs == degraded


def _sums(
    asked: ReportScope, since: datetime, until: datetime, measures: Sequence[str]
) -> dict[ModelKey, Sequence[int]]:
    question = Question(asked.window(since, until), BY_MODEL, measures, asked.terms)
    rows = sum_rollups(asked.project_id, question)
    return {(row[0], row[1]): row[2:] for row in rows if row[2]}


def _sources(
    asked: ReportScope, since: datetime, until: datetime
) -> dict[str | None, Sequence[int]]:
    window = asked.window(since, until).in_hours
    question = Question(window, ("source",), SENT, asked.terms)
    return {row[0]: row[1:] for row in sum_rollups(asked.project_id, question)}


def _curves(asked: ReportScope) -> Mapping[ModelKey, list[tuple[int, int]]]:
    span = asked.until - asked.since
    slots = Slots(asked.since, slot_width(span), slot_count(span))
    window = asked.window(asked.since, asked.until)
    question = Question(window, BY_MODEL, BASELINE_COUNTED, asked.terms, slots)
    found: dict[ModelKey, list[tuple[int, int]]] = defaultdict(lambda: [(0, 0)] * slots.count)
    for provider, model, slot, runs, degraded in sum_rollups(asked.project_id, question):
        found[provider, model][slot] = (runs, degraded)
    return found


def _resolved(asked: ReportScope) -> list[FailureGroup]:
    mine = Q(
        project_id=asked.project_id,
        state=FailureGroup.State.RESOLVED,
        changes__kind=GroupChange.Kind.RESOLVED,
        changes__at__gte=asked.since,
        changes__at__lt=asked.until,
    )
    found = FailureGroup.objects.filter(mine).distinct().order_by("-last_seen", "-pk")
    return list(found[: MOST_GROUPS + 1])


def _group_text(group: FailureGroup, models: Mapping[ModelKey, int]) -> str:
    at = f" at {name_of(group.pointer, 80)}" if group.pointer else ""
    names = [_model_name(key) for key in models]
    of = f", {names[0]}" if names else ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    what = group.error_type or group.kind
    return f"{name_of(what).replace('_', ' ')}{at}, node {name_of(group.node)}{of}{more}"


def _model_name(key: ModelKey) -> str:
    return name_of("/".join(part for part in key if part))
