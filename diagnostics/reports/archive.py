"""Reports as rows: made once for all who want the same, kept as figures, worded when shown."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Count, Q, QuerySet
from django.http import QueryDict
from django.urls import NoReverseMatch, reverse

from diagnostics import clock
from diagnostics.accounts.models import Project, SavedView
from diagnostics.figures import plural
from diagnostics.outbound.mail_merge import Circular
from diagnostics.redaction.rescrub import mask_document
from diagnostics.redaction.rules import redactor_of
from diagnostics.reports.document import (
    LONGEST_TEXT,
    AdviceFigures,
    Degradation,
    ReportDocument,
    has_news,
    name_of,
    subject_of,
)
from diagnostics.reports.models import Report, ReportDelivery, Subscription
from diagnostics.reports.periods import ReportPeriod
from diagnostics.reports.queries import (
    ModelKey,
    ReportScope,
    add_up,
    read_groups,
    read_incidents,
    read_models,
    read_quality,
)
from diagnostics.reports.rendering import Letter, slot_width, write_letter
from diagnostics.reports.subscriptions import schedule_of, title_of
from diagnostics.selection.selection import Selection, read_selection
from diagnostics.store.retention import delete_oldest
from diagnostics.verdict.advice import Advice
from diagnostics.verdict.suspects import Cause
from diagnostics.verdict.verdicts import Verdict, verdict_of
from diagnostics.verdict.wording import CAUSE_WORDS

MOST_ADVICE = 3
MARGIN = timedelta(minutes=1)


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
    asked = ReportScope(
        project.pk,
        period.since,
        period.until,
        period.before().since,
        selection.rollup_terms,
        now,
    )
    models = read_models(asked, lambda key: _model_url(selection, key))
    groups, more = read_groups(asked, _address)
    verdict = verdict_of(project.pk, selection, now)
    page = f"{_address('now')}?{selection.query()}"
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
        models=models,
        degradation=_degradation(verdict),
        groups=groups,
        more_groups=more,
        advice=_advice(verdict.advice, f"{_address('failures')}?{selection.query()}"),
        incidents=read_incidents(asked, _address("incidents")),
        quality=read_quality(asked, _address("ingest")),
        remarks=_remarks(selection),
    )


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


def _degradation(verdict: Verdict) -> Degradation | None:
    rate, finding = verdict.rate, verdict.finding
    if verdict.state != "degrading" or verdict.since is None or rate is None:
        return None
    return Degradation(
        subject=_hit(verdict),
        since=verdict.since,
        bad=rate.bad,
        total=rate.total,
        noun=rate.noun,
        baseline=rate.baseline,
        kind=finding.top_kind or "",
        cause=_cause(verdict),
    )


def _hit(verdict: Verdict) -> str:
    finding, who = verdict.finding, verdict.who
    if finding.cause in (Cause.MODEL, Cause.PROVIDER_OUTAGE):
        return name_of(finding.value)
    if who is not None and who.model:
        return name_of(f"{who.provider}/{who.model}" if who.provider else who.model)
    return plural(finding.models, "model")


def _cause(verdict: Verdict) -> str:
    finding = verdict.finding
    if finding.cause is None or finding.cause not in CAUSE_WORDS:
        return "There is not enough data to say why."
    words = CAUSE_WORDS[finding.cause]
    if finding.cause in (Cause.PROMPT, Cause.SCHEMA, Cause.RELEASE):
        return f"{words}: {name_of(finding.value)}."
    return f"{words}."


def _advice(advice: Sequence[Advice], url: str) -> list[AdviceFigures]:
    return [
        AdviceFigures(
            text=name_of(one.text, LONGEST_TEXT),
            evidence=name_of(one.evidence, LONGEST_TEXT),
            url=url,
        )
        for one in advice[:MOST_ADVICE]
    ]


def _remarks(selection: Selection) -> list[str]:
    if not selection.needs_events and not any(
        term.field in ("kind", "outcome") for term in selection.terms
    ):
        return []
    return [
        "The view has filters on single events or kinds; figures here are of all runs "
        "that its other filters keep."
    ]


def _model_url(selection: Selection, key: ModelKey) -> str:
    provider, model = key
    query = selection.narrowed_to(provider=provider, model=model)
    return f"{_address('now')}?{query}"


def _address(name: str, *args: object) -> str:
    """Return the path of a page; a part that is not installed leads to the first page."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return "/"


PERSONAL = ("why", "skipped", "change", "pause", "unsubscribe")
DIGEST_BYTES = 16
KEEP_DELIVERIES = timedelta(days=90)
DAY = timedelta(days=1)
SHOWN = (ReportDelivery.State.WAITING, ReportDelivery.State.FAILED)
PURGE_BATCH = 5_000


def subject_for(subscription: Subscription, period: ReportPeriod) -> ReportSubject:
    """Say which report a subscription gets for a period."""
    view = subscription.view
    return ReportSubject(
        subscription.project,
        title_of(subscription),
        view.query if view else subscription.query,
        subscription.cadence,
        period,
    )


def report_for(subject: ReportSubject, view: SavedView | None = None) -> Report:
    """Return the report of a subject, made now unless it was made before."""
    key = _key(subject)
    found = Report.objects.filter(**key).first()
    if found is not None:
        return found
    now = clock.now()
    document = _redacted(summarise(subject, now), subject.project.pk)
    made = Report(
        **key,
        view=view,
        title=document.title,
        query=subject.query,
        cadence=subject.cadence,
        zone=subject.period.zone.key,
        subject=subject_of(document),
        document=document.model_dump(mode="json"),
        has_news=has_news(document),
        created_at=now,
    )
    Report.objects.bulk_create([made], ignore_conflicts=True)
    return Report.objects.get(**key)


def archive_last_days(project: Project, at: datetime, days: int = 7) -> Report:
    """Make and keep a report of whole days (UTC) that end at midnight after `at`."""
    after = at.astimezone(UTC).date() + timedelta(days=1)
    period = ReportPeriod(after - timedelta(days=days), after, ZoneInfo("UTC"))
    cadence = "weekly" if days > 1 else "daily"
    return report_for(ReportSubject(project, project.name, "", cadence, period))


def preview_of(subscription: Subscription) -> ReportDocument:
    """Read the report that would be sent if it were due now; nothing is kept."""
    now = clock.now()
    period = schedule_of(subscription).latest(now).period
    document = summarise(subject_for(subscription, period), now)
    return _redacted(document, subscription.project_id)


def reports_of(project_id: int) -> QuerySet[Report]:
    """Return the archive of a project, newest period first."""
    found = Report.objects.filter(project_id=project_id)
    return found.order_by("-period_end", "-id")


def letter_of(report: Report) -> Letter:
    """Put a kept report into words."""
    return write_letter(ReportDocument.model_validate(report.document))


def circular_of(letter: Letter) -> Circular:
    """Render the mail of a report; what is each reader's own is put in later."""
    return Circular(letter.subject, "report", {"letter": letter}, PERSONAL)


def count_mails(project_id: int | None) -> Mapping[str, int]:
    """Count mails that wait, and those of the last day that were given up."""
    rows = ReportDelivery.objects.filter(state__in=SHOWN)
    if project_id is not None:
        rows = rows.filter(project_id=project_id)
    lately = Q(state=ReportDelivery.State.FAILED, created_at__gte=clock.now() - DAY)
    waiting = Q(state=ReportDelivery.State.WAITING)
    counted: Mapping[str, int] = rows.aggregate(
        waiting=Count("pk", filter=waiting), failed=Count("pk", filter=lately)
    )
    return counted


def purge_old() -> int:
    """Delete reports and deliveries that are not kept any longer; returns how many."""
    now = clock.now()
    reports = now - timedelta(days=settings.FAILSOFT_KEEP_REPORT_DAYS)
    return _purge(ReportDelivery, now - KEEP_DELIVERIES) + _purge(Report, reports)


def _purge(model: type[Report] | type[ReportDelivery], before: datetime) -> int:
    rows: QuerySet[Any] = model._default_manager.filter(created_at__lt=before)
    if model is ReportDelivery:
        rows = rows.exclude(state=ReportDelivery.State.WAITING)
    return delete_oldest(rows, "created_at", PURGE_BATCH)


def _key(subject: ReportSubject) -> Mapping[str, Any]:
    return {
        "project": subject.project,
        "digest": _digest(subject),
        "period_start": subject.period.since,
        "period_end": subject.period.until,
    }


def _digest(subject: ReportSubject) -> str:
    parts = (subject.title, subject.query, subject.cadence, subject.period.zone.key)
    joined = "\0".join(parts).encode(errors="replace")
    return hashlib.blake2b(joined, digest_size=DIGEST_BYTES).hexdigest()


def _redacted(document: ReportDocument, project_id: int) -> ReportDocument:
    """Mask once more, by the project's rules: names and pointers come from agents."""
    told = mask_document(document.model_dump(mode="json"), redactor_of(project_id))
    return ReportDocument.model_validate(told)
