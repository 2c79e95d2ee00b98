"""Sending what is queued: claimed by a lease, recorded once, delivered at least once.

1. Claim the next row that is due: a lease, and a fencing number that grows.
2. Send it under its own key, the same at every try.
3. Record the end, if the claim still holds. Whoever is killed between 2 and 3 leaves a
   lease that runs out, and the row is sent again under the same key.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

import structlog
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce

from diagnostics import clock
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.senders import Receipts, SendError, Sending, accepted, waiting
from diagnostics.alerting.senders.chat import prepare_chat
from diagnostics.alerting.senders.mail import prepare_mail, probe_mail
from diagnostics.alerting.senders.webhook import prepare_webhook, probe_webhook
from diagnostics.clock import DatabaseNow
from diagnostics.outbound.credentials import CredentialError, WorkingKeyError
from diagnostics.outbound.retry_after import read_retry_after
from diagnostics.redaction.redactor import redact
from diagnostics.redaction.rules import texts_of
from diagnostics.store.deadlines import OutOfTimeError, deadline
from diagnostics.store.sql import fetch, statement

PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 360))


def next_pause(tries: int) -> timedelta | None:
    """Return the pause after the so-manyth try that failed; None: it is given up."""
    return PAUSES[tries - 1] if 0 < tries <= len(PAUSES) else None


logger = structlog.get_logger(__name__)
PREPARERS: Mapping[str, Callable[[Notification], Sending]] = {
    Channel.Kind.EMAIL: prepare_mail,
    Channel.Kind.WEBHOOK: prepare_webhook,
    Channel.Kind.CHAT: prepare_chat,
}
# Whether a receiver that did not answer is back; nobody knows it of a chat service.
PROBES: Mapping[str, Callable[[Channel], bool]] = {
    Channel.Kind.EMAIL: lambda _: probe_mail(),
    Channel.Kind.WEBHOOK: probe_webhook,
    Channel.Kind.CHAT: lambda _: False,
}
# How many of each kind are under way in a process: slow receivers leave mail its own.
AT_ONCE: Mapping[str, int] = {Channel.Kind.EMAIL: 4, Channel.Kind.WEBHOOK: 8, Channel.Kind.CHAT: 4}
# A message that takes longer to write is tried again later.
PREPARE_SECONDS = 5.0
# While some are under way, what has become due meanwhile is looked for.
POLL_SECONDS = 0.2
LEASE = timedelta(minutes=2)
# A channel that fails is tried so often: a server that hangs must not hold up the rest.
PACE = timedelta(minutes=1)
ERROR_BYTES = 500
# Short: on one machine the same process folds and relays.
LONGEST_SECONDS = 10.0
State = Notification.State
# A test that was asked for by hand is tried once.
ONCE = frozenset({Notification.Reason.TEST})


def deliver_all(seconds: float = LONGEST_SECONDS) -> int:
    """Send what is due, several at a time; returns how many were tried.

    Threads wait for receivers; rows are read and written by this one alone.
    """
    end, delivered = time.monotonic() + seconds, 0
    under_way: dict[Future[str], Notification] = {}
    with ThreadPoolExecutor(sum(AT_ONCE.values())) as threads:
        while True:
            row = claim_next(list(under_way.values()), is_ending=time.monotonic() >= end)
            if row is not None:
                delivered += 1
                if (sending := _prepare(row)) is not None:
                    under_way[threads.submit(sending)] = row
            elif under_way:
                ended, _ = wait(under_way, POLL_SECONDS, FIRST_COMPLETED)
                for future in ended:
                    _record(under_way.pop(future), future.result)
            else:
                return delivered


def claim_next(
    under_way: Sequence[Notification] = (), *, is_ending: bool = False
) -> Notification | None:
    """Take the next notification that is due, ours until its lease runs out; None without one.

    Of a channel there is one under way at a time, whose project has none comes first, and one
    place of each kind is left to other projects.
    `is_ending`: mail only, and only while other receivers are waited for.
    """
    counts = Counter((row.project_id, row.channel.kind) for row in under_way)
    crowded = [crowd for crowd, count in counts.items() if count >= AT_ONCE[crowd[1]] - 1]
    parameters = {
        "lease": LEASE,
        "pace": PACE,
        "full": _full_kinds(under_way, is_ending=is_ending),
        "crowding_projects": [project_id for project_id, _ in crowded],
        "crowded_kinds": [kind for _, kind in crowded],
        "channels": [row.channel_id for row in under_way],
        "projects": [row.project_id for row in under_way],
    }
    rows = Notification.objects.select_related("channel", "project")
    while claimed := fetch(statement("claim_notification"), parameters):
        number, fencing = claimed[0]
        # None: its channel or project was deleted since.
        if (row := rows.filter(pk=number, fencing=fencing).first()) is not None:
            return row
    return None


def _full_kinds(under_way: Sequence[Notification], *, is_ending: bool) -> list[str]:
    counts = Counter(row.channel.kind for row in under_way)
    mails = counts[Channel.Kind.EMAIL]
    if not is_ending:
        return [kind for kind, most in AT_ONCE.items() if counts[kind] >= most]
    is_open = mails < counts.total() and mails < AT_ONCE[Channel.Kind.EMAIL]
    return [kind for kind in AT_ONCE if kind != Channel.Kind.EMAIL or not is_open]


def probe_channels() -> int:
    """Ask channels that nobody answered at whether they are back; wake what waits there.

    Returns how many came back.
    """
    waiting = Notification.objects.filter(
        state=State.QUEUED, next_attempt_at__gt=DatabaseNow() + PACE
    )
    gone = Channel.objects.filter(
        is_unreachable=True, probed_at__lte=DatabaseNow() - PACE, pk__in=waiting.values("channel")
    )
    end = time.monotonic() + LONGEST_SECONDS
    longest_ago = gone.order_by("probed_at")
    in_time = takewhile(lambda channel: time.monotonic() < end, longest_ago)
    return sum(_probe(channel) for channel in in_time)


def _prepare(row: Notification) -> Sending | None:
    """Read all that is sent; None when there is nothing to send, which is recorded."""
    if row.reason == Notification.Reason.DIGEST and not row.digested.exists():
        _held(row).update(state=State.SUPPRESSED, why="nothing to tell")
        return None
    try:
        with deadline(PREPARE_SECONDS):
            return PREPARERS[row.channel.kind](row)
    except (Exception, OutOfTimeError) as error:  # noqa: BLE001 - one bad row must not stop the rest
        _record_failure(row, error)
        return None


def _record(row: Notification, sending: Sending) -> None:
    with texts_of(row.project_id):
        try:
            answer = sending()
        except Exception as error:  # noqa: BLE001 - one bad row must not stop the rest
            _record_failure(row, error)
        else:
            _record_success(row, answer)


def _probe(channel: Channel) -> bool:
    Channel.objects.filter(pk=channel.pk).update(probed_at=DatabaseNow())
    try:
        if not PROBES[channel.kind](channel):
            return False
    except (CredentialError, WorkingKeyError):
        return False
    _bring_forward(channel.pk)
    logger.info("channel_answers_again", channel=channel.pk)
    return True


def _bring_forward(channel_id: int) -> None:
    """Bring forward all that waits at a channel, in the order it was written."""
    waiting = Notification.objects.filter(channel_id=channel_id, state=State.QUEUED, tries__gt=0)
    # The order is that of these times: as it was written, before what is newer.
    waiting.update(next_attempt_at=F("created_at"))
    Channel.objects.filter(pk=channel_id).update(failing_since=None, is_unreachable=False)


def _record_success(row: Notification, answer: str) -> None:
    with transaction.atomic():
        ended = _held(row).update(
            state=State.SENT,
            sent_at=DatabaseNow(),
            lease_until=None,
            answer=redact(answer, ERROR_BYTES),
            last_error="",
            receipts={},
        )
        if not ended:
            return
        _note_passage(row.channel, DatabaseNow())
    logger.info("notification_sent", notification=row.pk, tries=row.tries)


def _record_failure(row: Notification, error: BaseException) -> None:
    is_plain = isinstance(error, SendError | CredentialError | WorkingKeyError)
    words = str(error) if is_plain else f"{type(error).__name__}: {error}"
    message, pause = redact(words, ERROR_BYTES), next_pause(row.tries)
    answer = error if isinstance(error, SendError) else SendError("")
    with transaction.atomic():
        receipts = answer.receipts
        now, changes = clock.now(), _receipt_changes(row, receipts)
        asked_wait = read_retry_after(answer.retry_after, now) or timedelta()
        is_answered = answer.is_final or (bool(receipts) and not waiting(receipts))
        is_over = pause is None or row.reason in ONCE or is_answered
        ended = _held(row).update(
            state=State.FAILED if is_over else State.QUEUED,
            next_attempt_at=now if is_over else now + max(pause or timedelta(), asked_wait),
            lease_until=None,
            last_error=message,
            **changes,
        )
        if ended and "sent_at" in changes:
            _note_passage(row.channel, changes["sent_at"], message)
        elif ended:
            Channel.objects.filter(pk=row.channel_id).update(
                failing_since=Coalesce(F("failing_since"), now),
                is_unreachable=answer.unreachable,
                # Whoever asks to wait is sent nothing else meanwhile.
                probed_at=now + max(asked_wait - PACE, timedelta()),
                last_error=message,
            )
    logger.warning("notification_not_sent", notification=row.pk, tries=row.tries)


def _note_passage(channel: Channel, sent_at: datetime | DatabaseNow, refused: str = "") -> None:
    """Record that a channel works: its server took a message, for all or some addresses."""
    Channel.objects.filter(pk=channel.pk).update(
        last_sent_at=sent_at, failing_since=None, is_unreachable=False, last_error=refused
    )
    if channel.failing_since is not None:
        _bring_forward(channel.pk)


def _receipt_changes(row: Notification, receipts: Receipts) -> dict[str, Any]:
    """Return what a row keeps of the answers for each address; `sent_at` if somebody has it."""
    if not receipts:
        return {}
    kept = {address: redact(text, ERROR_BYTES) for address, text in receipts.items()}
    is_news = len(accepted(kept)) > len(accepted(row.receipts))
    sent_at = clock.now() if is_news else row.sent_at
    return {"receipts": kept} | ({"sent_at": sent_at} if sent_at else {})


def _held(row: Notification) -> QuerySet[Notification]:
    """Return a row while the claim that read it holds."""
    return Notification.objects.filter(pk=row.pk, fencing=row.fencing, state=State.QUEUED)
