"""Stored reports: created once for identical subscriptions, as figures, worded on display."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Count, Q, QuerySet

from diagnostics import clock
from diagnostics.accounts.models import Project, SavedView
from diagnostics.outbound.mail import MailMerge
from diagnostics.redaction.rescrub import mask_document
from diagnostics.redaction.rules import redactor_of
from diagnostics.reports.document import ReportDocument, has_news
from diagnostics.reports.models import Report, ReportDelivery, Subscription
from diagnostics.reports.periods import ReportPeriod
from diagnostics.reports.queries import ReportSubject, summarise
from diagnostics.reports.rendering import Letter, subject_of
from diagnostics.reports.subscriptions import schedule_of
from diagnostics.store.sql import delete_oldest

PERSONAL = ("why", "skipped", "change", "pause", "unsubscribe")
DIGEST_BYTES = 16
KEEP_DELIVERIES = timedelta(days=90)
DAY = timedelta(days=1)
SHOWN = (ReportDelivery.State.WAITING, ReportDelivery.State.FAILED)
PURGE_BATCH = 5_000


def subject_for(subscription: Subscription, period: ReportPeriod) -> ReportSubject:
    view = subscription.view
    return ReportSubject(
        subscription.project,
        subscription.title,
        view.query if view else subscription.query,
        subscription.cadence,
        period,
    )


def report_for(subject: ReportSubject, view: SavedView | None = None) -> Report:
    period = subject.period
    identity = (subject.title, subject.query, subject.cadence, period.zone.key)
    digest = hashlib.blake2b("\0".join(identity).encode(errors="replace"), digest_size=DIGEST_BYTES)
    key: dict[str, Any] = {
        "project": subject.project,
        "digest": digest.hexdigest(),
        "period_start": period.since,
        "period_end": period.until,
    }
    existing = Report.objects.filter(**key).first()
    if existing is not None:
        return existing
    now = clock.now()
    document = _redacted(summarise(subject, now), subject.project.pk)
    report = Report(
        **key,
        view=view,
        title=document.title,
        query=subject.query,
        cadence=subject.cadence,
        zone=document.zone,
        subject=subject_of(document),
        document=document.model_dump(mode="json"),
        has_news=has_news(document),
        created_at=now,
    )
    Report.objects.bulk_create([report], ignore_conflicts=True)
    return Report.objects.get(**key)


def archive_last_days(project: Project, at: datetime) -> Report:
    """Return the stored report of the seven days (UTC) that end at midnight after `at`."""
    after = at.astimezone(UTC).date() + DAY
    period = ReportPeriod(after - 7 * DAY, after, ZoneInfo("UTC"))
    return report_for(ReportSubject(project, project.name, "", "weekly", period))


def preview_of(subscription: Subscription) -> ReportDocument:
    """Return the report that would be sent now, without storing it."""
    now = clock.now()
    period = schedule_of(subscription).latest(now).period
    document = summarise(subject_for(subscription, period), now)
    return _redacted(document, subscription.project_id)


def reports_of(project_id: int) -> QuerySet[Report]:
    reports = Report.objects.filter(project_id=project_id)
    return reports.order_by("-period_end", "-id")


def letter_of(report: Report) -> Letter:
    return Letter(ReportDocument.model_validate(report.document))


def mail_merge_of(letter: Letter) -> MailMerge:
    """Return the mail of a report, with placeholders for each recipient's values."""
    pictures = {curve.cid: curve.picture for curve in letter.curves}
    return MailMerge(letter.subject, "report", {"letter": letter}, PERSONAL, pictures)


def count_mails(project_id: int | None) -> Mapping[str, int]:
    """Return the number of waiting mails, and of mails that failed in the last day."""
    rows = ReportDelivery.objects.filter(state__in=SHOWN)
    if project_id is not None:
        rows = rows.filter(project_id=project_id)
    recently_failed = Q(state=ReportDelivery.State.FAILED, created_at__gte=clock.now() - DAY)
    waiting = Q(state=ReportDelivery.State.WAITING)
    counted: Mapping[str, int] = rows.aggregate(
        waiting=Count("pk", filter=waiting), failed=Count("pk", filter=recently_failed)
    )
    return counted


def purge_old() -> int:
    now, retention = clock.now(), timedelta(days=settings.FAILSOFT_KEEP_REPORT_DAYS)
    deliveries = ReportDelivery.objects.filter(created_at__lt=now - KEEP_DELIVERIES)
    ended = deliveries.exclude(state=ReportDelivery.State.WAITING)
    reports = Report.objects.filter(created_at__lt=now - retention)
    return sum(delete_oldest(rows, "created_at", PURGE_BATCH) for rows in (ended, reports))


def _redacted(document: ReportDocument, project_id: int) -> ReportDocument:
    """Redact again by the project's rules: names and pointers come from agents."""
    masked = mask_document(document.model_dump(mode="json"), redactor_of(project_id))
    return ReportDocument.model_validate(masked)
