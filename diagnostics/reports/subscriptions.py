"""Subscriptions to reports: access, schedule, pauses and ends, also by links in mails.

A link is for one subscription and one action, and needs no login. It becomes invalid when its
subscription gets a new token, and when it expires.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache, partial
from zoneinfo import ZoneInfo

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.crypto import get_random_string

from diagnostics import clock
from diagnostics.accounts.audit_log import Actor, note
from diagnostics.accounts.models import Person
from diagnostics.figures import plural
from diagnostics.outbound.mail import make_message_id
from diagnostics.reports.models import ReportDelivery, Subscription
from diagnostics.reports.periods import Due, Schedule
from diagnostics.store.deadlines import try_work
from diagnostics.web.signed_links import BadLinkError, read_link, sign_link
from failsoft.json_values import JSON

MOST_A_PERSON = 50
TOKEN_LENGTH = 22
PAUSE = timedelta(days=7)


def subscriptions_for(
    project_id: int, person: Person, *, may_administer: bool
) -> QuerySet[Subscription]:
    """Return a person's own subscriptions of a project; administrators see all."""
    subscriptions = Subscription.objects.filter(project_id=project_id, unsubscribed_at__isnull=True)
    if not may_administer:
        subscriptions = subscriptions.filter(user_id=person.pk or 0)
    return subscriptions.select_related("project", "user", "view").order_by("next_at", "pk")


def schedule_of(subscription: Subscription) -> Schedule:
    return Schedule(
        subscription.cadence,
        subscription.at,
        ZoneInfo(subscription.zone),
        subscription.weekday,
        subscription.month_day,
    )


@transaction.atomic
def subscribe(subscription: Subscription, by: Person) -> Subscription:
    """Store a new or changed subscription; its schedule starts now.

    Links in mails sent before a change remain valid.
    """
    subscription.next_at = schedule_of(subscription).after(clock.now()).at
    if subscription.view:
        # The view may be deleted: the report keeps its query.
        subscription.query = subscription.view.query
    is_new = subscription.pk is None
    if is_new:
        subscription.token = get_random_string(TOKEN_LENGTH)
        subscription.created_by_id = by.pk
    subscription.save()
    _note(subscription, by, "report.subscribed" if is_new else "report.changed")
    return subscription


@transaction.atomic
def pause(subscription: Subscription, by: Actor) -> datetime:
    """Pause a subscription; skipped reports are not sent later."""
    until = clock.now() + PAUSE
    subscription.paused_until = until
    subscription.save(update_fields=["paused_until"])
    _note(subscription, by, "report.paused", {"until": until.isoformat()})
    return until


@transaction.atomic
def resume(subscription: Subscription, by: Actor) -> None:
    """End a pause: the next report is sent at its regular time."""
    subscription.paused_until = None
    subscription.next_at = schedule_of(subscription).after(clock.now()).at
    subscription.save(update_fields=["paused_until", "next_at"])
    _note(subscription, by, "report.resumed")


@transaction.atomic
def unsubscribe(subscription: Subscription, by: Actor) -> None:
    """End a subscription; its row stays, so that the link still works."""
    active = Subscription.objects.filter(pk=subscription.pk, unsubscribed_at__isnull=True)
    if active.update(unsubscribed_at=clock.now()):
        _note(subscription, by, "report.unsubscribed")


def skipped_words(subscription: Subscription, skipped: list[str]) -> str:
    """Return a sentence on the skipped periods, by their first days."""
    zone = ZoneInfo(subscription.zone)
    days = [datetime.fromisoformat(since).astimezone(zone) for since in skipped]
    if not days:
        return ""
    dates = ", ".join(f"{day.day} {day:%b}" for day in days[-10:])
    return (
        f"{plural(len(days), 'earlier report')} skipped while sending was down: "
        f"periods from {dates}."
    )


def _note(
    subscription: Subscription, by: Actor, action: str, details: Mapping[str, JSON] | None = None
) -> None:
    audit_details = {"cadence": subscription.cadence, **(details or {})}
    target = f"subscription {subscription.pk}"
    note(subscription.project_id, by, action, target, audit_details)


class LinkAction(StrEnum):
    UNSUBSCRIBE = "unsubscribe"
    PAUSE = "pause"


# RFC 8058: unsubscribe links must work for long; a pause is requested from a recent mail.
KEEP = {LinkAction.UNSUBSCRIBE: timedelta(days=400), LinkAction.PAUSE: timedelta(days=60)}


def action_url(subscription: Subscription, order: LinkAction, now: datetime) -> str:
    """Return the full address that unsubscribes or pauses a subscription."""
    until = now + KEEP[order]
    token = sign_link(f"report.{order}", subscription.pk, until, subscription.token)
    before, after = _around(f"report_{order}", "token")
    return f"{settings.FAILSOFT_BASE_URL}{before}{token}{after}"


def edit_url(subscription: Subscription) -> str:
    before, after = _around("report_edit", "0")
    return f"{settings.FAILSOFT_BASE_URL}{before}{subscription.pk}{after}"


def subscription_of(action: LinkAction, token: str, now: datetime) -> Subscription | None:
    """Return the subscription of a link; None if the link is not, or no longer, valid."""
    try:
        number, key = read_link(f"report.{action}", token, now)
    except BadLinkError:
        return None
    subscriptions = Subscription.objects.filter(pk=number, token=key)
    return subscriptions.select_related("project", "view", "user").first()


@cache
def _around(name: str, mark: str) -> tuple[str, str]:
    """Return the parts of an address around its parameter, to reverse it once only."""
    before, _, after = reverse(name, args=[mark]).partition(mark)
    return before, after


logger = structlog.get_logger(__name__)
BATCH = 500
SECONDS = 5.0
MOST_BATCHES = 200


def due(now: datetime) -> int:
    """Create a delivery for every due subscription; return how many.

    After a downtime only the latest period is sent, with a list of those skipped. A paused
    subscription is rescheduled without a delivery.
    """
    written = 0
    for _ in range(MOST_BATCHES):
        waiting = Subscription.objects.filter(next_at__lte=now, unsubscribed_at__isnull=True)
        batch = list(waiting.order_by("next_at", "pk")[:BATCH])
        written += sum(
            try_work(
                "reports", subscription.project_id, partial(_claim, subscription, now), SECONDS
            )
            for subscription in batch
        )
        if len(batch) < BATCH:
            break
    return written


def _claim(subscription: Subscription, now: datetime) -> bool:
    schedule = schedule_of(subscription)
    latest = schedule.latest(now)
    unclaimed = Subscription.objects.filter(
        pk=subscription.pk, next_at=subscription.next_at, unsubscribed_at__isnull=True
    )
    with transaction.atomic():
        if not unclaimed.update(next_at=schedule.after(now).at):
            return False
        if subscription.paused_until and subscription.paused_until > now:
            return False
        skipped = schedule.between(subscription.next_at, latest.at)
        return _write(subscription, latest, skipped, now)


def _write(subscription: Subscription, latest: Due, skipped: list[Due], now: datetime) -> bool:
    since, days = latest.period.since, latest.period.days
    period = {"period_start": since, "period_end": latest.period.until}
    name = f"report-{subscription.project_id}-{subscription.pk}-{since:%Y%m%dT%H%M}-{days}"
    delivery = ReportDelivery(
        project_id=subscription.project_id,
        subscription=subscription,
        **period,
        skipped=[due.period.since.isoformat() for due in skipped],
        next_attempt_at=now,
        message_id=make_message_id(name),
        created_at=now,
    )
    # A weekly period may begin with a day that was sent before the cadence changed.
    if ReportDelivery.objects.filter(subscription=subscription, **period).exists():
        return False
    ReportDelivery.objects.bulk_create([delivery], ignore_conflicts=True)
    logger.info("report_due", subscription=subscription.pk, skipped=len(skipped))
    return True
