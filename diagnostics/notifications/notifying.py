"""Sending what is queued: claimed by a lease, recorded once, delivered at least once.

1. Claim the next row that is due: a lease, and a fencing number that grows.
2. Send it under its own key, the same at every try.
3. Record the end, if the claim still holds. Whoever is killed between 2 and 3 leaves a
   lease that runs out, and the row is sent again under the same key.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce

from diagnostics import clock
from diagnostics.clock import DatabaseNow
from diagnostics.core.notifying.retrying import next_pause
from diagnostics.models import Channel, Notification
from diagnostics.notifications.sending.chat import send_chat
from diagnostics.notifications.sending.faults import SendError
from diagnostics.notifications.sending.mail import probe_mail, send_mail
from diagnostics.notifications.sending.webhook import probe_webhook, send_webhook
from diagnostics.outbound.credentials import CredentialError
from diagnostics.outbound.sealing import WorkingKeyError
from diagnostics.redaction.redacting import redact
from diagnostics.sql import statement

logger = structlog.get_logger(__name__)

SENDERS: Mapping[str, Callable[[Notification], str]] = {
    Channel.Kind.EMAIL: send_mail,
    Channel.Kind.WEBHOOK: send_webhook,
    Channel.Kind.CHAT: send_chat,
}
LEASE = timedelta(minutes=2)
# A channel that fails is tried so often: a server that hangs must not hold up the rest.
PACE = timedelta(minutes=1)
ERROR_BYTES = 500
# Short: on one machine the same process folds and relays.
LONGEST_SECONDS = 10.0
State = Notification.State
# A test that was asked for by hand is tried once.
ONCE = frozenset({Notification.Reason.TEST})


@dataclass(frozen=True, slots=True)
class Claim:
    """A row that is ours until its lease runs out."""

    notification: int
    fencing: int


def deliver_all(seconds: float = LONGEST_SECONDS) -> int:
    """Send what is due, one after the other; returns how many were tried."""
    end, tried = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        claim = claim_next()
        if claim is None:
            break
        deliver(claim)
        tried += 1
    return tried


def claim_next() -> Claim | None:
    """Take the next notification that is due; None when there is none."""
    with connection.cursor() as cursor:
        given: dict[str, Any] = {"lease": LEASE, "pace": PACE}
        cursor.execute(statement("claim_notification"), given)
        row = cursor.fetchone()
    return None if row is None else Claim(*row)


def deliver(claim: Claim) -> bool:
    """Send what is claimed and record the end; False when it did not get through."""
    rows = Notification.objects.select_related("channel", "project")
    row = rows.get(pk=claim.notification)
    if row.reason == Notification.Reason.DIGEST and not row.digested.exists():
        _held(claim).update(state=State.SUPPRESSED, why="nothing to tell")
        return False
    try:
        answer = SENDERS[row.channel.kind](row)
    except SendError as error:
        _record_failure(claim, row, str(error), unreachable=error.unreachable)
        return False
    except (CredentialError, WorkingKeyError) as error:
        _record_failure(claim, row, str(error), unreachable=False)
        return False
    except Exception as error:  # noqa: BLE001 - one bad row must not stop the rest
        _record_failure(
            claim, row, f"{type(error).__name__}: {error}", unreachable=False
        )
        return False
    _record_success(claim, row, answer)
    return True


def probe_channels() -> int:
    """Ask channels that nobody answered at whether they are back; wake what waits there.

    Returns how many came back.
    """
    waiting = Notification.objects.filter(
        state=State.QUEUED, next_attempt_at__gt=DatabaseNow() + PACE
    )
    gone = Channel.objects.filter(
        is_unreachable=True,
        probed_at__lte=DatabaseNow() - PACE,
        pk__in=waiting.values("channel"),
    )
    return sum(_probe(channel) for channel in gone)


def _probe(channel: Channel) -> bool:
    Channel.objects.filter(pk=channel.pk).update(probed_at=DatabaseNow())
    try:
        if not _answers(channel):
            return False
    except (CredentialError, WorkingKeyError):
        return False
    _wake(channel.pk)
    logger.info("channel_answers_again", channel=channel.pk)
    return True


def _answers(channel: Channel) -> bool:
    if channel.kind == Channel.Kind.EMAIL:
        return probe_mail()
    return channel.kind == Channel.Kind.WEBHOOK and probe_webhook(channel)


def _wake(channel_id: int) -> None:
    """Bring forward all that waits at a channel, in the order it was written."""
    waiting = Notification.objects.filter(
        channel_id=channel_id, state=State.QUEUED, tries__gt=0
    )
    # The order is that of these times: as it was written, before what is newer.
    waiting.update(next_attempt_at=F("created_at"))
    Channel.objects.filter(pk=channel_id).update(
        failing_since=None, is_unreachable=False
    )


def _record_success(claim: Claim, row: Notification, answer: str) -> None:
    with transaction.atomic():
        ended = _held(claim).update(
            state=State.SENT,
            sent_at=DatabaseNow(),
            lease_until=None,
            answer=redact(answer, ERROR_BYTES),
            last_error="",
        )
        if not ended:
            return
        was_failing = row.channel.failing_since is not None
        Channel.objects.filter(pk=row.channel_id).update(
            last_sent_at=DatabaseNow(),
            failing_since=None,
            is_unreachable=False,
            last_error="",
        )
        if was_failing:
            _wake(row.channel_id)
    logger.info("notification_sent", notification=row.pk, tries=row.tries)


def _record_failure(
    claim: Claim, row: Notification, words: str, *, unreachable: bool
) -> None:
    told, pause = redact(words, ERROR_BYTES), next_pause(row.tries)
    with transaction.atomic():
        now = clock.now()
        is_over = pause is None or row.reason in ONCE
        ended = _held(claim).update(
            state=State.FAILED if is_over else State.QUEUED,
            next_attempt_at=now if is_over else now + (pause or timedelta()),
            lease_until=None,
            last_error=told,
        )
        if ended:
            Channel.objects.filter(pk=row.channel_id).update(
                failing_since=Coalesce(F("failing_since"), now),
                is_unreachable=unreachable,
                probed_at=now,
                last_error=told,
            )
    logger.warning("notification_not_sent", notification=row.pk, tries=row.tries)


def _held(claim: Claim) -> QuerySet[Notification]:
    return Notification.objects.filter(
        pk=claim.notification, fencing=claim.fencing, state=State.QUEUED
    )
