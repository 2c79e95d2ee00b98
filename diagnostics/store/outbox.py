"""The outbox: messages for the broker are rows first.

A message is sent at least once; the receiver claims its work by a row of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic

import structlog
from celery import current_app
from django.db import transaction
from django.db.models import F, QuerySet
from kombu.exceptions import OperationalError

from diagnostics import clock
from diagnostics.redaction.redactor import redact
from diagnostics.store.models import OutboxMessage
from diagnostics.store.sql import delete_oldest
from failsoft.json_values import JSON

RELAY_TASK = "diagnostics.tasks.relay_outbox"
RELAY_QUEUE = "fold"
# Beat wakes the relay every three seconds anyway, and a hanging broker costs a request 2 s a time.
PAUSE_SECONDS = 30.0


class _Pause:
    until = 0.0


def wake_relay() -> bool:
    """Ask a worker to relay now; return False if the broker was not reached. Never raises."""
    if monotonic() < _Pause.until:
        return False
    if _Pause.until:
        # This caller tries again; concurrent ones need not wait as well.
        _Pause.until = monotonic() + PAUSE_SECONDS
    try:
        send(RELAY_TASK, {}, RELAY_QUEUE)
    except Exception as error:  # noqa: BLE001 - the row is safe, the hint is optional
        _Pause.until = monotonic() + PAUSE_SECONDS
        logger.warning("relay_not_woken", reason=broker_fault(error))
        return False
    _Pause.until = 0.0
    return True


def send(task: str, kwargs: dict[str, object], queue: str) -> None:
    """Send one task to the broker, once; raises if it cannot be reached."""
    current_app.send_task(task, kwargs=kwargs, queue=queue, retry=False)


logger = structlog.get_logger(__name__)
BATCH = 100
KEEP_SENT = timedelta(hours=24)
PURGE_BATCH = 10_000
LONGEST_PAUSE = timedelta(hours=1)
ERROR_BYTES = 500
# The exceptions of a broker that is down, for any transport.
BROKER_ERRORS = (OperationalError, ConnectionError, TimeoutError)
# What Redis, RabbitMQ, OpenSSL and the system say, and what it means for BROKER_URL.
BROKER_FAULTS = {
    "read only replica": "the broker is read-only: BROKER_URL leads to a replica",
    "NOREPLICAS": "the broker has too few replicas: its min-replicas-to-write",
    "maxmemory": "the broker's memory is full",
    "MISCONF": "the broker cannot save its data: its log names the folder",
    "loading the dataset": "the broker is still loading its data",
    "max number of clients": "the broker accepts no more connections: its maxclients",
    "DB index": "the broker has no database of the number in BROKER_URL",
    "no permissions": "the broker's user lacks permissions for keys or commands",
    "invalid username-password": "the broker refuses the user or the password",
    "Authentication required": "the broker refuses a connection without a password",
    "ACCESS_REFUSED": "the broker refuses the user, the password or a permission",
    "NOT_ALLOWED": "the broker has no such virtual host, or refuses it to the user",
    "Hash slot": "the broker is a Redis Cluster, which is not supported",
    "MOVED": "the broker is a Redis Cluster, which is not supported",
    "Connection refused": "nothing listens at the address of BROKER_URL",
    "No such file": "nothing listens at the address of BROKER_URL",
    "Name or service not known": "the host of BROKER_URL is unknown",
    "name resolution": "the host of BROKER_URL is unknown",
    "CERTIFICATE_VERIFY_FAILED": "the broker's certificate is not trusted: SSL_CERT_FILE",
    "WRONG_VERSION_NUMBER": "the broker does not use TLS, as BROKER_URL says",
    "reset by peer": "the broker closed the connection: is BROKER_URL right about TLS?",
    "closed by server": "the broker closed the connection: is BROKER_URL right about TLS?",
    "timed out": "no answer in time from the address of BROKER_URL",
    "Timeout ": "no answer in time from the address of BROKER_URL",
}


def broker_fault(error: Exception) -> str:
    """Return why the broker took nothing; other errors by type, as drivers name addresses."""
    said = str(error).casefold()
    reasons = (BROKER_FAULTS[words] for words in BROKER_FAULTS if words.casefold() in said)
    return next(reasons, type(error).__name__)


@dataclass(frozen=True, slots=True)
class Relayed:
    """The result of one batch: sent, postponed after an error of their own, broker down."""

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

    `args` become keyword arguments: ids only, never a text.
    """
    (message,) = enqueue_many(task, [args], queue, project_id, delay=delay)
    return message


def enqueue_many(
    task: str,
    arguments: Sequence[Mapping[str, JSON]],
    queue: str,
    project_id: int | None,
    *,
    delay: timedelta = timedelta(0),
) -> list[OutboxMessage]:
    """Write one message per set of arguments, like `enqueue`."""
    at = clock.now() + delay
    messages = [
        OutboxMessage(
            task=task, kwargs=dict(args), queue=queue, project_id=project_id, available_at=at
        )
        for args in arguments
    ]
    written = OutboxMessage.objects.bulk_create(messages)
    if written and not delay:
        transaction.on_commit(wake_relay, robust=True)
    return written


def relay_batch() -> Relayed:
    """Send due messages, oldest first; concurrent relays share the work by SKIP LOCKED.

    If the broker is down, the batch ends and every row stays as it is. A message with an error of
    its own is postponed, longer each time, and blocks nothing behind it.
    """
    sent: list[int] = []
    failed = 0
    with transaction.atomic():
        for message in waiting().select_for_update(skip_locked=True)[:BATCH]:
            try:
                _send(message)
            except BROKER_ERRORS as error:
                logger.warning("broker_unreachable", reason=broker_fault(error))
                _mark_sent(sent)
                return Relayed(len(sent), failed, broker_down=True)
            except Exception as error:  # noqa: BLE001 - one bad row must not stop the rest
                _postpone(message, error)
                failed += 1
            else:
                sent.append(message.pk)
        _mark_sent(sent)
    return Relayed(len(sent), failed)


def relay_all() -> int:
    """Relay until nothing is due; return how many messages were sent."""
    total = 0
    while True:
        relayed = relay_batch()
        total += relayed.sent
        if relayed.broker_down or relayed.sent + relayed.failed < BATCH:
            return total


def purge_sent() -> int:
    old = OutboxMessage.objects.filter(sent_at__lt=clock.now() - KEEP_SENT)
    return delete_oldest(old, "sent_at", PURGE_BATCH)


def waiting() -> QuerySet[OutboxMessage]:
    due = OutboxMessage.objects.filter(sent_at__isnull=True, available_at__lte=clock.now())
    return due.order_by("available_at", "id")


def _send(message: OutboxMessage) -> None:
    if message.task not in current_app.tasks:
        current_app.autodiscover_tasks(force=True)
    if message.task not in current_app.tasks:
        raise UnknownTaskError(UnknownTaskError.__doc__)
    send(message.task, message.kwargs, message.queue)


def _mark_sent(ids: list[int]) -> None:
    OutboxMessage.objects.filter(pk__in=ids).update(
        sent_at=clock.now(), tries=F("tries") + 1, last_error=""
    )


def _postpone(message: OutboxMessage, error: Exception) -> None:
    pause = min(timedelta(seconds=2 ** min(message.tries + 1, 12)), LONGEST_PAUSE)
    message.tries += 1
    message.available_at = clock.now() + pause
    message.last_error = redact(f"{type(error).__name__}: {error}", ERROR_BYTES)
    message.save(update_fields=["tries", "available_at", "last_error"])
    logger.error("message_put_off", task=message.task, tries=message.tries)
