"""The outbox: what must reach the broker is a row first (C9).

A message is sent at least once: the receiver claims its work by a row of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from celery import current_app
from django.db import transaction
from django.db.models import F, QuerySet
from kombu.exceptions import OperationalError

from diagnostics import clock
from diagnostics.core.cleaning import JSON
from diagnostics.models import OutboxMessage
from diagnostics.redaction.redacting import redact
from diagnostics.storage.batches import delete_oldest
from diagnostics.submitting import send, wake_relay

logger = structlog.get_logger(__name__)

BATCH = 100
KEEP_SENT = timedelta(hours=24)
PURGE_BATCH = 10_000
LONGEST_PAUSE = timedelta(hours=1)
ERROR_BYTES = 500
# What a broker that is down raises, whatever the transport.
BROKER_ERRORS = (OperationalError, ConnectionError, TimeoutError)


@dataclass(frozen=True, slots=True)
class Relayed:
    """What one batch did: sent, put off because of a fault of their own, broker gone."""

    sent: int
    failed: int
    broker_down: bool = False


class UnknownTaskError(Exception):
    """no worker knows this task"""


def enqueue(
    task: str,
    args: Mapping[str, JSON],
    queue: str,
    project_id: int | None,
    *,
    delay: timedelta = timedelta(0),
) -> OutboxMessage:
    """Write a message in the caller's transaction; the relay is woken after commit.

    `args` become keyword arguments: ids only, never a text (X-17).
    """
    message = OutboxMessage.objects.create(
        task=task,
        kwargs=dict(args),
        queue=queue,
        project_id=project_id,
        available_at=clock.now() + delay,
    )
    if not delay:
        transaction.on_commit(wake_relay, robust=True)
    return message


def enqueue_many(
    task: str, arguments: Sequence[Mapping[str, JSON]], queue: str, project_id: int
) -> None:
    """Write one message for each set of arguments, like `enqueue`."""
    if not arguments:
        return
    now = clock.now()
    OutboxMessage.objects.bulk_create(
        OutboxMessage(
            task=task,
            kwargs=dict(args),
            queue=queue,
            project_id=project_id,
            available_at=now,
        )
        for args in arguments
    )
    transaction.on_commit(wake_relay, robust=True)


def relay_batch(limit: int = BATCH) -> Relayed:
    """Send what is due, oldest first; several relays share the work by SKIP LOCKED.

    A broker that is down ends the batch and leaves every row as it is. A message with a
    fault of its own is put off, longer each time, and blocks nothing behind it.
    """
    sent: list[int] = []
    failed = 0
    with transaction.atomic():
        for message in _claim_due(limit):
            try:
                _send(message)
            except BROKER_ERRORS as error:
                logger.warning("broker_unreachable", error=type(error).__name__)
                _mark_sent(sent)
                return Relayed(len(sent), failed, broker_down=True)
            except Exception as error:  # noqa: BLE001 - one bad row must not stop the rest
                _put_off(message, error)
                failed += 1
            else:
                sent.append(message.pk)
        _mark_sent(sent)
    return Relayed(len(sent), failed)


def relay_all() -> int:
    """Relay until nothing is due; returns how many messages were sent."""
    total = 0
    while True:
        relayed = relay_batch()
        total += relayed.sent
        if relayed.broker_down or relayed.sent + relayed.failed < BATCH:
            return total


def purge_sent() -> int:
    """Delete messages sent more than a day ago; returns how many."""
    old = OutboxMessage.objects.filter(sent_at__lt=clock.now() - KEEP_SENT)
    return delete_oldest(old, "sent_at", PURGE_BATCH)


def waiting() -> QuerySet[OutboxMessage]:
    """Give the messages that are due and not sent, oldest first."""
    due = OutboxMessage.objects.filter(sent_at__isnull=True, available_at__lte=clock.now())
    return due.order_by("available_at", "id")


def _claim_due(limit: int) -> list[OutboxMessage]:
    return list(waiting().select_for_update(skip_locked=True)[:limit])


def _send(message: OutboxMessage) -> None:
    if not _is_known(message.task):
        raise UnknownTaskError(UnknownTaskError.__doc__)
    send(message.task, message.kwargs, message.queue)


def _is_known(task: str) -> bool:
    if task not in current_app.tasks:
        current_app.autodiscover_tasks(force=True)
    return task in current_app.tasks


def _mark_sent(ids: list[int]) -> None:
    OutboxMessage.objects.filter(pk__in=ids).update(
        sent_at=clock.now(), tries=F("tries") + 1, last_error=""
    )


def _put_off(message: OutboxMessage, error: Exception) -> None:
    pause = min(timedelta(seconds=2 ** min(message.tries + 1, 12)), LONGEST_PAUSE)
    message.tries += 1
    message.available_at = clock.now() + pause
    message.last_error = redact(f"{type(error).__name__}: {error}", ERROR_BYTES)
    message.save(update_fields=["tries", "available_at", "last_error"])
    logger.error("message_put_off", task=message.task, tries=message.tries)
