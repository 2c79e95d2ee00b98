"""Reads of reports: models, kinds of failure, incidents and sources in a period.

Counts are by rollups: whole hours, minutes at the edges of local days while minutes are
kept, whole days beyond a year. The number of statements does not grow with what is found.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from django.db.models import Q, Sum

from diagnostics.alerting.incident_models import Incident
from diagnostics.failures.groups import newest_groups
from diagnostics.failures.models import FailureGroup, GroupChange
from diagnostics.ingest.models import KeyMinute
from diagnostics.queries.sums import Question, Slots, sum_rollups
from diagnostics.reports.document import (
    GroupFigures,
    IncidentFigures,
    ModelFigures,
    QualityFigures,
    name_of,
)
from diagnostics.reports.rendering import slot_count, slot_width
from diagnostics.selection.query_language import Term
from diagnostics.store.rollups import VERSION
from diagnostics.store.windows import HOURS_KEPT, MINUTES_KEPT, WIDTHS, Grain, TimeWindow, align_to

MODEL = ("provider", "model")
COUNTED = (
    "runs",
    "degraded",
    "ok_first",
    "repaired",
    "retry_input_tokens",
    "retry_output_tokens",
    "retry_ms",
)
ENDED = ("runs", "degraded")
SENT = ("events", "invalid", "succeeded", "runs", "degraded")
USUAL = timedelta(days=7)
SILENT = timedelta(days=1)
MOST_GROUPS = 5
# A project has hardly more models; a report names the worst.
MOST_MODELS = 200

ModelKey = tuple[str | None, str | None]
Address = Callable[..., str]


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
        if since < self.now - HOURS_KEPT:
            return align_to(Grain.DAY, since, until)
        has_minutes = since >= self.now - MINUTES_KEPT + WIDTHS[Grain.MINUTE]
        if has_minutes and not any(term.field in VERSION for term in self.terms):
            return align_to(Grain.MINUTE, since, until)
        return align_to(Grain.HOUR, since, until)


def read_models(asked: ReportScope, address: Callable[[ModelKey], str]) -> list[ModelFigures]:
    """Return every model that ended a run in the period or the one before."""
    found = _sums(asked, asked.since, asked.until, COUNTED)
    before = _sums(asked, asked.before, asked.since, ENDED)
    usual = _sums(asked, min(asked.before, asked.since - USUAL), asked.since, ENDED)
    curves = _curves(asked)
    keys = sorted({**found, **before}, key=lambda key: -found.get(key, (0,))[0])
    return [
        _figures(
            name_of("/".join(part for part in key if part)),
            address(key),
            found.get(key, (0,) * len(COUNTED)),
            (*before.get(key, (0, 0)), *usual.get(key, (0, 0))),
            curves.get(key, []),
        )
        for key in keys[:MOST_MODELS]
    ]


def add_up(models: Sequence[ModelFigures], url: str) -> ModelFigures:
    """Return all models together."""
    fields = [name for name in ModelFigures.model_fields if name not in {"name", "url", "curve"}]
    sums = {name: sum(getattr(model, name) for model in models) for name in fields}
    curves = [model.curve for model in models if model.curve]
    added = [
        (sum(one[0] for one in slot), sum(one[1] for one in slot))
        for slot in zip(*curves, strict=True)
    ]
    return ModelFigures(name="all models", url=url, curve=added, **sums)


def read_groups(asked: ReportScope, address: Address) -> tuple[list[GroupFigures], int]:
    """Return what began, came back or was resolved (5 of each at most), and how many more."""
    fresh = newest_groups(asked.project_id, asked.since, asked.until, MOST_GROUPS + 1, asked.terms)
    told = [
        GroupFigures(
            state="regressed" if one.is_regressed else "new",
            text=_group_text(one.group, one.models),
            seen=one.seen,
            url=address("failure", one.group.pk),
        )
        for one in sorted(fresh[:MOST_GROUPS], key=lambda one: not one.is_regressed)
    ]
    resolved = _resolved(asked)
    told += [
        GroupFigures(
            state="resolved",
            text=_group_text(group, {}),
            seen=0,
            url=address("failure", group.pk),
        )
        for group in resolved[:MOST_GROUPS]
    ]
    return told, len(fresh) + len(resolved) - len(told)


def read_incidents(asked: ReportScope, url: str) -> IncidentFigures:
    """Tell of the incidents that fired in the period: all of the project's."""
    fired = Incident.objects.filter(
        project_id=asked.project_id, fired_at__gte=asked.since, fired_at__lt=asked.until
    )
    rows = list(fired.values_list("fired_at", "acknowledged_at", "cleared_at", "resolution_cause"))
    noticed = [(ack - at).total_seconds() for at, ack, _, _ in rows if ack]
    cleared = [(end - at).total_seconds() for at, _, end, _ in rows if end]
    causes = [cause for *_, cause in rows if cause]
    return IncidentFigures(
        count=len(rows),
        open=len(rows) - len(cleared),
        acknowledged=len(noticed),
        acknowledge_seconds=median(noticed) if noticed else None,
        clear_seconds=median(cleared) if cleared else None,
        judged=len(causes),
        false_alarms=causes.count(Incident.Cause.FALSE_ALARM),
        url=url,
    )


def read_quality(asked: ReportScope, url: str) -> QualityFigures:
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
        silent=sorted(name_of(name) for name in known if not _events(lately, name)),
        without_successes=sorted(name_of(name) for name, row in sent.items() if _fails_only(row)),
        url=url,
    )


def _events(rows: Mapping[str | None, Sequence[int]], name: str | None) -> int:
    return rows[name][0] if name in rows else 0


def _fails_only(row: Sequence[int]) -> bool:
    _, invalid, succeeded, runs, degraded = row
    return bool(invalid or degraded) and not succeeded and runs == degraded


def _sums(
    asked: ReportScope, since: datetime, until: datetime, measures: Sequence[str]
) -> dict[ModelKey, Sequence[int]]:
    question = Question(asked.window(since, until), MODEL, measures, asked.terms)
    rows = sum_rollups(asked.project_id, question)
    return {(row[0], row[1]): row[2:] for row in rows if row[2]}


def _sources(
    asked: ReportScope, since: datetime, until: datetime
) -> dict[str | None, Sequence[int]]:
    window = align_to(Grain.HOUR, since, until)
    question = Question(window, ("source",), SENT, asked.terms)
    return {row[0]: row[1:] for row in sum_rollups(asked.project_id, question)}


def _curves(asked: ReportScope) -> Mapping[ModelKey, list[tuple[int, int]]]:
    span = asked.until - asked.since
    slots = Slots(asked.since, slot_width(span), slot_count(span))
    window = asked.window(asked.since, asked.until)
    question = Question(window, MODEL, ENDED, asked.terms, slots)
    found: dict[ModelKey, list[tuple[int, int]]] = defaultdict(lambda: [(0, 0)] * slots.count)
    for provider, model, slot, runs, degraded in sum_rollups(asked.project_id, question):
        found[provider, model][slot] = (runs, degraded)
    return found


def _figures(
    name: str,
    url: str,
    row: Sequence[int],
    before: Sequence[int],
    curve: list[tuple[int, int]],
) -> ModelFigures:
    runs, degraded, ok_first, repaired, asked_tokens, told_tokens, milliseconds = row
    return ModelFigures(
        name=name,
        url=url,
        runs=runs,
        degraded=degraded,
        ok_first=ok_first,
        repaired=repaired,
        retry_tokens=asked_tokens + told_tokens,
        retry_ms=milliseconds,
        runs_before=before[0],
        degraded_before=before[1],
        runs_usual=before[2],
        degraded_usual=before[3],
        curve=curve,
    )


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
    names = [name_of("/".join(part for part in key if part)) for key in models]
    of = f", {names[0]}" if names else ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    what = group.error_type or group.kind
    return f"{name_of(what).replace('_', ' ')}{at}, node {name_of(group.node)}{of}{more}"
