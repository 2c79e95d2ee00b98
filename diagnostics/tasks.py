"""Celery tasks; every task may be delivered twice or not at all."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from celery import shared_task
from django.contrib.sessions.models import Session

from diagnostics import clock
from diagnostics.alerting.dead_man import ping_outside
from diagnostics.alerting.delivery import deliver_all, probe_channels
from diagnostics.alerting.evaluator import evaluate
from diagnostics.alerting.reminders import remind_all, send_canaries
from diagnostics.alerting.rule_rows import purge_evaluations
from diagnostics.ingest.answerers import forget_old_answerers
from diagnostics.ingest.key_counts import forget_old_counts
from diagnostics.ingest.log_answers import settle_verdicts
from diagnostics.ingest.span_runs import forget_old_spans, settle_runs
from diagnostics.prices.prices import look_up_prices
from diagnostics.redaction.rescrub import advance_all
from diagnostics.reports.archive import purge_old
from diagnostics.reports.sending import send_waiting
from diagnostics.reports.subscriptions import due
from diagnostics.store import retention
from diagnostics.store.aggregation import fold
from diagnostics.store.deadlines import try_work
from diagnostics.store.leases import note_mark, send_mark
from diagnostics.store.models import Heartbeat, heartbeat_of
from diagnostics.store.outbox import purge_sent, relay_all
from diagnostics.store.partitions import are_days_ready, ensure_partitions
from diagnostics.store.retention import drop_old
from diagnostics.store.runs import forget_old_runs
from diagnostics.store.sql import change, delete_in_batches

# A re-sent event is recognised for this long.
KEEP_IDENTITY = timedelta(days=8)
PURGE_BATCH = 50_000
SECONDS = 45.0
FORGET = """
DELETE FROM diagnostics_eventidentity WHERE (project_id, event_id) IN (
    SELECT project_id, event_id FROM diagnostics_eventidentity
    WHERE received_at < %s ORDER BY received_at LIMIT %s)
"""


# Each returns how much was done.
relay_outbox = shared_task(name="diagnostics.tasks.relay_outbox")(relay_all)
fold_deltas = shared_task(name="diagnostics.tasks.fold_deltas")(fold)
settle_span_verdicts = shared_task(name="diagnostics.tasks.settle_span_verdicts")(settle_verdicts)
settle_span_runs = shared_task(name="diagnostics.tasks.settle_span_runs")(settle_runs)
deliver_due = shared_task(name="diagnostics.tasks.deliver_due")(deliver_all)
advance_rescrubs = shared_task(name="diagnostics.tasks.advance_rescrubs")(advance_all)
mark_queue = shared_task(name="diagnostics.tasks.mark_queue")(send_mark)
index_words = shared_task(name="diagnostics.tasks.index_words")(retention.index_words)
price_models = shared_task(name="diagnostics.tasks.price_models")(look_up_prices)


@shared_task
def evaluate_alerts() -> int:
    """Evaluate every minute that was not evaluated yet; return how many."""
    evaluated = evaluate()
    if evaluated:
        ping_outside()
    return evaluated


@shared_task
def beat_heartbeat(queues: Sequence[str] = ()) -> None:
    """Record that the scheduler sent this and a worker ran it, by the database clock.

    Then send marks to queues: a task for each would cost as much again.
    """
    Heartbeat.note(clock.now(), "beat", "worker")
    if not are_days_ready():
        ensure_partitions()
    for queue in queues:
        send_mark(queue)


@shared_task
def deliver_again() -> int:
    """Send reminders, probe channels and send daily tests; return how many."""
    return probe_channels() + remind_all() + send_canaries()


@shared_task
def report_due() -> int:
    """Create due reports, and send waiting ones; return how many were sent."""
    due(clock.now())
    return send_waiting()


@shared_task
def ping_queue(queue: str, at: str | None = None) -> None:
    """Record that a worker of a queue takes work, and which mark it has taken.

    A scheduler of an earlier release sends no time.
    """
    Heartbeat.note(clock.now(), heartbeat_of("queue", queue))
    if at is not None:
        note_mark(queue, datetime.fromisoformat(at))


@shared_task
def note_workers(queues: Sequence[str], *, has_pool: bool = True) -> None:
    """Record that a worker of these queues is alive; a worker calls it in its own process.

    `has_pool`: whether its pool has a process that takes tasks.
    """
    names = (heartbeat_of("worker" if has_pool else "pool", queue) for queue in queues)
    Heartbeat.note(clock.now(), *names)


@shared_task
def maintain_partitions() -> int:
    """Create partitions ahead and delete what is no longer kept; return how much was done."""
    return sum(try_work(name, None, work, SECONDS) for name, work in UPKEEP.items())


def purge_identities() -> int:
    """Delete identities older than 8 days, batch by batch; return how many."""
    before = clock.now() - KEEP_IDENTITY
    return delete_in_batches(lambda most: change(FORGET, [before, most]), PURGE_BATCH)


# One that fails or takes too long, since a reader holds its table, leaves the others their turn.
UPKEEP: Mapping[str, Callable[[], int]] = {
    "partitions": lambda: len(ensure_partitions()),
    "old partitions": lambda: len(drop_old()),
    "evaluations": purge_evaluations,
    "identities": purge_identities,
    "sessions": lambda: Session.objects.filter(expire_date__lt=clock.now()).delete()[0],
    "outbox": purge_sent,
    "answerers": forget_old_answerers,
    "key counts": forget_old_counts,
    "runs": forget_old_runs,
    "spans": forget_old_spans,
    "reports": purge_old,
}
