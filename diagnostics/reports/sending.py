"""Sending report mails: leased, in batches over one connection, with retries.

The record is exactly once, the mail at least once: a sender that is killed between the server's
acceptance and its own update sends again, with the same Message-ID.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from smtplib import SMTPException
from time import monotonic
from zoneinfo import ZoneInfo

import structlog
from django.core.mail import get_connection
from django.db import transaction
from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from diagnostics import clock
from diagnostics.accounts.models import Membership
from diagnostics.alerting.delivery import next_pause
from diagnostics.outbound.mail import Copy, MailMerge
from diagnostics.outbound.smtp import answers_of
from diagnostics.redaction.redactor import redact
from diagnostics.redaction.rules import texts_of
from diagnostics.reports.archive import letter_of, mail_merge_of, report_for, subject_for
from diagnostics.reports.models import DeliveryState, Report, ReportDelivery, Subscription
from diagnostics.reports.periods import ReportPeriod
from diagnostics.reports.queries import ReportSubject
from diagnostics.reports.subscriptions import LinkAction, action_url, edit_url, skipped_words
from diagnostics.store.deadlines import OutOfTimeError, deadline

logger = structlog.get_logger(__name__)

BATCH = 200
MOST_BATCHES = 25
# A mail server that hangs costs 20 seconds a mail: no other is begun after so long.
MOST_SECONDS = 240.0
# More than the clocks of machines differ.
LEASE = timedelta(minutes=15)
# A report of ten million events takes a few seconds.
RENDER_SECONDS = 60.0
ERROR_BYTES = 300
State = DeliveryState
Prepared = tuple[ReportDelivery, Copy]


class NoAddressError(Exception):
    """the person has no mail address"""


class ReportTimeoutError(Exception):
    """a report of this project took too long"""


@dataclass
class Rendered:
    """Reports and mails of one batch, each rendered once for all recipients.

    A project of which a report took too long has its other reports in a later batch.
    """

    mail_merges: dict[int, MailMerge] = field(default_factory=dict)
    reports: dict[ReportSubject, Report] = field(default_factory=dict)
    late_projects: set[int] = field(default_factory=set)

    def report(self, delivery: ReportDelivery) -> Report:
        """Return the report of a delivery. Raises ReportTimeoutError."""
        subject = subject_for(delivery.subscription, period_of(delivery))
        if subject not in self.reports:
            if delivery.project_id in self.late_projects:
                raise ReportTimeoutError(ReportTimeoutError.__doc__)
            try:
                with deadline(RENDER_SECONDS):
                    self.reports[subject] = report_for(subject, delivery.subscription.view)
            except OutOfTimeError as error:
                self.late_projects.add(delivery.project_id)
                raise ReportTimeoutError(ReportTimeoutError.__doc__) from error
        return self.reports[subject]

    def mail_merge(self, report: Report) -> MailMerge:
        if report.pk not in self.mail_merges:
            self.mail_merges[report.pk] = mail_merge_of(letter_of(report))
        return self.mail_merges[report.pk]


def send_waiting() -> int:
    """Send due mails, the oldest of each project first; return how many the server accepted.

    What it has no time for is sent by the next call.
    """
    sent, rendered, end = 0, Rendered(), monotonic() + MOST_SECONDS
    for _ in range(MOST_BATCHES):
        claimed = claim(clock.now())
        sent += send_copies(prepare(claimed, rendered, end))
        if len(claimed) < BATCH or monotonic() >= end:
            break
    return sent


def claim(now: datetime, limit: int = BATCH) -> list[ReportDelivery]:
    """Claim due deliveries that no other sender holds, for a quarter of an hour.

    The oldest of every project come first: many mails of one do not hold up those of another.
    """
    free = Q(lease_until__isnull=True) | Q(lease_until__lt=now)
    waiting = ReportDelivery.objects.filter(free, state=State.WAITING, next_attempt_at__lte=now)
    turn = Window(RowNumber(), "project_id", ["next_attempt_at", "id"])
    first = waiting.annotate(turn=turn).order_by("turn", "next_attempt_at", "id")
    with transaction.atomic():
        rows = waiting.filter(pk__in=list(first.values_list("pk", flat=True)[:limit]))
        ids = list(rows.select_for_update(skip_locked=True).values_list("pk", flat=True))
        claimed = ReportDelivery.objects.filter(pk__in=ids)
        claimed.update(lease_until=now + LEASE, claim=F("claim") + 1)
    deliveries = claimed.select_related(
        "subscription__project", "subscription__user", "subscription__view"
    )
    return list(deliveries.order_by("next_attempt_at", "id"))


def prepare(
    claimed: Sequence[ReportDelivery], rendered: Rendered, end: float = inf
) -> Iterator[Prepared]:
    """Yield the mails of deliveries; those not to be sent, or failing, are recorded.

    From `end` on they are left to the next sender.
    """
    readers = _readers(claimed)
    for delivery in claimed:
        if monotonic() >= end:
            _held(delivery).update(lease_until=None)
        elif _is_wanted(delivery, readers):
            try:
                copy = _copy_for(delivery, rendered)
            except Exception as error:  # noqa: BLE001 - one fault must not stop the rest
                _retry_later(delivery, error)
            else:
                if copy:
                    yield delivery, copy


def send_copies(prepared: Iterable[Prepared]) -> int:
    """Send mails over one connection and record each at once; return how many were sent."""
    sent, connection = 0, get_connection()
    for delivery, copy in prepared:
        try:
            connection.open()
            connection.send_messages([copy])
        except Exception as error:  # noqa: BLE001 - one reader's fault must not stop the rest
            _retry_later(delivery, error)
            _close(connection)
        else:
            changes = {"sent_at": clock.now(), "last_error": "", "tries": delivery.tries + 1}
            sent += _settle(delivery, State.SENT, report=delivery.report, **changes)
    _close(connection)
    return sent


def personal_values(
    subscription: Subscription, skipped: list[str], now: datetime
) -> Mapping[str, str]:
    reader = subscription.user.get_username() if subscription.user else "this address"
    return {
        "why": f"You get this because {reader} is subscribed to reports on "
        f"{subscription.title}: {subscription.when}.",
        "skipped": skipped_words(subscription, skipped),
        "change": edit_url(subscription),
        "pause": action_url(subscription, LinkAction.PAUSE, now),
        "unsubscribe": action_url(subscription, LinkAction.UNSUBSCRIBE, now),
    }


def copy_of(
    mail: MailMerge,
    subscription: Subscription,
    message_id: str,
    skipped: list[str],
    now: datetime,
    address: str | None = None,
) -> Copy:
    """Return one recipient's mail, or a copy of it to another address.

    RFC 8058's headers let mail programs unsubscribe.
    """
    values = personal_values(subscription, skipped, now)
    headers = {
        "List-Unsubscribe": f"<{values['unsubscribe']}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }
    to = address or subscription.recipient
    return mail.copy_for(to, values, message_id, headers)


def period_of(delivery: ReportDelivery) -> ReportPeriod:
    zone = ZoneInfo(delivery.subscription.zone)
    first, after = (
        at.astimezone(zone).date() for at in (delivery.period_start, delivery.period_end)
    )
    return ReportPeriod(first, after, zone)


def _copy_for(delivery: ReportDelivery, rendered: Rendered) -> Copy | None:
    subscription = delivery.subscription
    report = rendered.report(delivery)
    if subscription.only_when_changed and not report.has_news:
        _settle(delivery, State.UNCHANGED, report=report)
        return None
    if not subscription.recipient:
        raise NoAddressError(NoAddressError.__doc__)
    delivery.report = report
    return copy_of(
        rendered.mail_merge(report),
        subscription,
        delivery.message_id,
        delivery.skipped,
        delivery.created_at,
    )


def _readers(claimed: Sequence[ReportDelivery]) -> set[tuple[int, int]]:
    """Return (project, person) of current members."""
    people = {delivery.subscription.user_id or 0 for delivery in claimed}
    memberships = Membership.objects.filter(
        project_id__in={delivery.project_id for delivery in claimed},
        user_id__in=people,
        user__is_active=True,
    )
    return set(memberships.values_list("project_id", "user_id"))


def _is_wanted(delivery: ReportDelivery, readers: set[tuple[int, int]]) -> bool:
    """Whether to send, checked right before sending: a reader may have left since."""
    subscription = delivery.subscription
    if subscription.unsubscribed_at is not None:
        _settle(delivery, State.CANCELLED)
        return False
    person = subscription.user_id
    if person is not None and (subscription.project_id, person) not in readers:
        _settle(delivery, State.NO_ACCESS)
        return False
    return True


def _held(delivery: ReportDelivery) -> QuerySet[ReportDelivery]:
    """Return a delivery, unless another sender claimed it."""
    return ReportDelivery.objects.filter(pk=delivery.pk, claim=delivery.claim, state=State.WAITING)


def _settle(delivery: ReportDelivery, state: State, **changes: object) -> int:
    return _held(delivery).update(state=state, lease_until=None, **changes)


def _retry_later(delivery: ReportDelivery, error: Exception) -> None:
    answer = "".join(answers_of(error, [delivery.subscription.recipient]).values())
    with texts_of(delivery.project_id):
        error_text = redact(answer or f"{type(error).__name__}: {error}", ERROR_BYTES)
    tries = delivery.tries + 1
    # Whoever has no address, or is refused by the server for good, is not tried again.
    is_over = isinstance(error, NoAddressError) or answer.startswith("5")
    pause = None if is_over else next_pause(tries)
    logger.warning("report_not_sent", delivery=delivery.pk, error=type(error).__name__)
    at = clock.now() + (pause or timedelta())
    _settle(
        delivery,
        State.WAITING if pause else State.FAILED,
        next_attempt_at=at,
        last_error=error_text,
        tries=tries,
    )


def _close(connection: object) -> None:
    try:
        connection.close()  # type: ignore[attr-defined]
    except (SMTPException, OSError):
        logger.info("mail_connection_lost")
