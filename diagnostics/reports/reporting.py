"""Which reports are due: one slot a subscription and period, whoever asks and how often (C10).

A subscription knows when it is due next. Whoever moves that time on by a conditional update
has claimed the slot and writes the delivery in the same transaction; a clock that goes wrong
finds the time moved already, and the unique row behind it refuses the rest.
"""

from datetime import datetime

import structlog
from django.db import transaction

from diagnostics.core.reports.periods import Due
from diagnostics.models import ReportDelivery, Subscription
from diagnostics.outbound.mailing import make_message_id
from diagnostics.reports.subscriptions import schedule_of

logger = structlog.get_logger(__name__)

BATCH = 500
MOST_BATCHES = 200


def due(now: datetime) -> int:
    """Write a delivery for every subscription that is due; returns how many.

    After a downtime only the latest period is sent, and those passed over are listed in it.
    While a subscription is paused its time moves on and nothing is written.
    """
    written = 0
    for _ in range(MOST_BATCHES):
        found = _due(now)
        written += sum(_claim(subscription, now) for subscription in found)
        if len(found) < BATCH:
            break
    return written


def _due(now: datetime) -> list[Subscription]:
    waiting = Subscription.objects.filter(next_at__lte=now, unsubscribed_at__isnull=True)
    return list(waiting.order_by("next_at", "pk")[:BATCH])


def _claim(subscription: Subscription, now: datetime) -> bool:
    schedule = schedule_of(subscription)
    latest = schedule.latest(now)
    mine = Subscription.objects.filter(
        pk=subscription.pk, next_at=subscription.next_at, unsubscribed_at__isnull=True
    )
    with transaction.atomic():
        if not mine.update(next_at=schedule.after(now).at):
            return False
        if subscription.paused_until and subscription.paused_until > now:
            return False
        skipped = schedule.between(subscription.next_at, latest.at)
        return _write(subscription, latest, skipped, now)


def _write(subscription: Subscription, latest: Due, skipped: list[Due], now: datetime) -> bool:
    since = latest.period.since
    name = f"report-{subscription.project_id}-{subscription.pk}-{since:%Y%m%dT%H%M}"
    delivery = ReportDelivery(
        project_id=subscription.project_id,
        subscription=subscription,
        period_start=since,
        period_end=latest.period.until,
        skipped=[due.period.since.isoformat() for due in skipped],
        next_attempt_at=now,
        message_id=make_message_id(name),
        created_at=now,
    )
    known = ReportDelivery.objects.filter(subscription=subscription)
    if known.filter(period_start=since).exists():
        return False
    ReportDelivery.objects.bulk_create([delivery], ignore_conflicts=True)
    logger.info("report_due", subscription=subscription.pk, skipped=len(skipped))
    return True
