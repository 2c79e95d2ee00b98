"""The Celery application; messages are hints, rows are authoritative."""

import math
import os
import signal
import sys
import time
from contextlib import suppress
from functools import cached_property
from typing import Any

from billiard import active_children
from celery import Celery, signals
from celery.utils.log import get_logger
from celery.worker import state
from celery.worker.strategy import default
from django.conf import settings
from django.db import close_old_connections
from kombu import Connection, Queue

from config.gc_tuning import freeze_loaded_objects
from config.local.launch import end_with_starter
from config.worker_watchdog import Stall, count_waiting, report_alive, watch
from plans.runs import worker_threads

logger = get_logger(__name__)

QUEUES = ("plan", "steps", "notify", "report", "fold")

# The heartbeat sends marks through these queues to show that workers consume them; it does the
# same for `fold` itself.
PINGED_QUEUES = ("plan", "steps")
HEARTBEAT_TASK = "diagnostics.tasks.beat_heartbeat"

# The periodic tasks of the scheduler, with their intervals in seconds.
BEAT = (
    # A commit wakes the relay: this sends what was delayed, or waited for a broker that was down.
    ("diagnostics.tasks.relay_outbox", 3.0),
    (HEARTBEAT_TASK, 5.0),
    ("diagnostics.tasks.fold_deltas", 5.0),
    # A minute is evaluated once; a shorter interval only makes it earlier.
    ("diagnostics.tasks.evaluate_alerts", 10.0),
    ("plans.tasks.reconcile_runs", 5.0),
    ("agents.tasks.reconcile_goals", 5.0),
    ("agents.tasks.reconcile_purges", 30.0),
    ("diagnostics.tasks.deliver_due", 5.0),
    ("diagnostics.tasks.deliver_again", 20.0),
    ("plans.tasks.request_discovery", 30.0),
    ("diagnostics.tasks.advance_rescrubs", 15.0),
    ("diagnostics.tasks.report_due", 15.0),
    ("diagnostics.tasks.settle_span_verdicts", 30.0),
    ("diagnostics.tasks.settle_span_runs", 10.0),
    ("plans.tasks.purge_working_store", 600.0),
    ("diagnostics.tasks.price_models", 600.0),
    ("diagnostics.tasks.maintain_partitions", 3600.0),
    ("diagnostics.tasks.index_words", 3600.0),
)

ALIVE_TASK = "diagnostics.tasks.note_workers"

PUBLISH_SECONDS = 2.0
# On a busy machine a process of the pool takes longer to start than Celery's 4 seconds, and one
# that is killed for it is started again, and killed again.
START_SECONDS = 60.0
AMQP_BOUNDS = ("connect_timeout", "read_timeout", "write_timeout")
REDIS_BOUNDS = ("socket_connect_timeout", "socket_timeout")

# A whole name wins over patterns, of which the first wins: what beat sends never waits behind
# plans or steps.
ROUTES = (
    *((name, {"queue": "fold"}) for name, _ in BEAT if not name.startswith("diagnostics.")),
    ("diagnostics.tasks.deliver_*", {"queue": "notify"}),
    ("diagnostics.tasks.report_*", {"queue": "report"}),
    ("diagnostics.tasks.*", {"queue": "fold"}),
    ("plans.tasks.*", {"queue": "steps"}),
    ("agents.tasks.*", {"queue": "plan"}),
)


def make_queues(broker_url: str) -> tuple[Queue, ...]:
    """Return the queues; quorum queues for RabbitMQ."""
    kind = {"x-queue-type": "quorum"} if broker_url.startswith("amqp") else None
    return tuple(Queue(name, queue_arguments=kind) for name in QUEUES)


def make_transport_options(broker_url: str) -> dict[str, object]:
    """Return transport options with which publishers fail immediately; the row remains.

    Without a bound, a publish in a request waits forever for a broker that is down.
    """
    options: dict[str, object] = dict.fromkeys(
        ("max_retries", "interval_start", "interval_step", "interval_max"), 0
    )
    if broker_url.startswith("amqp"):
        return options
    return {**options, "visibility_timeout": settings.FAILSOFT_BROKER_VISIBILITY_SECONDS}


def make_schedule() -> dict[str, dict[str, object]]:
    """Return the schedule; no message expires, `TickStrategy` drops those that piled up."""
    schedule: dict[str, dict[str, object]] = {
        name: {"task": name, "schedule": seconds} for name, seconds in BEAT
    }
    schedule[HEARTBEAT_TASK]["kwargs"] = {"queues": PINGED_QUEUES}
    return schedule


class Failsoft(Celery):
    """Celery with timeouts for publishers; consumers still wait for the broker."""

    @cached_property
    def Beat(self) -> Any:  # noqa: ANN401, N802 - as the base has it
        """Beat, which queues tasks by name."""
        return self.subclass_with_self("config.beat:LeanBeat")  # type: ignore[arg-type] # or its name

    def connection_for_write(self, url: str | None = None, **options: Any) -> Connection:
        """Return a connection with timeouts of PUBLISH_SECONDS."""
        transport_options = options.pop("transport_options", None) or {}
        is_amqp = (url or self.conf.broker_write_url).startswith("amqp")
        names = AMQP_BOUNDS if is_amqp else REDIS_BOUNDS
        bounds = dict.fromkeys(names, PUBLISH_SECONDS)
        return super().connection_for_write(
            url, transport_options=bounds | transport_options, **options
        )


app = Failsoft("failsoft")


@signals.setup_logging.connect
def keep_logging(**kwargs: object) -> None:
    """Leave logging as Django configured it: Celery adds no handlers if this signal is received."""


@signals.worker_init.connect
def prepare_worker(**kwargs: object) -> None:
    """Freeze what is loaded before the pool starts, so that its processes share the memory."""
    freeze_loaded_objects()


@signals.worker_process_init.connect
def prepare_process(**kwargs: object) -> None:
    """Prepare a process that executes tasks: on SIGTERM of the worker it requeues its run.

    In the one-machine stack the process ends when its worker is killed.
    """
    worker_threads.handle_stop_signal()
    if settings.FAILSOFT_LOCAL_STACK:
        end_with_starter(signal.SIGKILL)


@signals.task_prerun.connect
@signals.task_postrun.connect
def keep_connections(**kwargs: object) -> None:
    """Keep the database connections of a process that work, as between two requests."""
    close_old_connections()


stall = Stall()


@signals.worker_ready.connect
def watch_for_stall(sender: Any, **kwargs: object) -> None:  # noqa: ANN401 - untyped
    """End this worker when it has free slots but does not consume waiting messages."""
    queues = list(sender.app.amqp.queues.consume_from)
    watch(
        stall,
        lambda: count_waiting(sender.app, queues),
        lambda: sender.controller.concurrency - len(state.reserved_requests),
    )
    note_workers = sender.app.tasks[ALIVE_TASK]
    report_alive(stall, lambda: note_workers(queues, has_pool=has_process(sender.pool)))


def has_process(pool: Any) -> bool:  # noqa: ANN401 - untyped
    """Whether a process of a worker's pool is up: those that are starting take no messages."""
    processes: Any = getattr(pool, "_pool", None)
    starting = getattr(processes, "_waiting_to_start", None)
    return starting is None or any(process not in starting for process in processes._pool)


class TickStrategy:
    """Takes a message of beat unless one of the same task came less than half an interval ago.

    A task of beat does what is due by its rows, so one run stands for all messages that piled
    up. Celery's `expires` compares the clocks of two machines: workers an hour ahead of beat
    would drop every message. Here only a worker's own steady clock counts.
    """

    def __init__(self, task: Any, app: Celery, consumer: Any) -> None:  # noqa: ANN401 - untyped
        self._take = default(task, app, consumer)
        self._errors = consumer.connection_errors
        self._pause = dict(BEAT)[task.name] / 2
        self._taken = -math.inf

    def __call__(self, message: Any, body: Any, acknowledge: Any, *rest: Any) -> None:  # noqa: ANN401
        """Take a message, or acknowledge it without running its task."""
        # What comes again was taken by a process that died: the task has not run.
        is_again = message.delivery_info.get("redelivered") or message.headers.get("redelivered")
        if message.headers.get("celery_beat_task") and not is_again:
            now = time.monotonic()
            if now - self._taken < self._pause:
                stall.note_message()
                acknowledge(logger, self._errors)
                return
            self._taken = now
        self._take(message, body, acknowledge, *rest)


@signals.task_received.connect
def record_message(**kwargs: object) -> None:
    """Record that this worker consumes messages."""
    stall.note_message()


@signals.worker_shutting_down.connect
def notify_children_of_stop(**kwargs: object) -> None:
    """Signal the child processes that the worker is stopping."""
    for child in active_children():
        if child.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(child.pid, worker_threads.STOP_SIGNAL)


app.conf.update(
    broker_url=settings.BROKER_URL or "memory://",
    broker_connection_retry_on_startup=True,
    # A broker may close the channel during a long task. The worker opens another one,
    # and skips redelivered messages whose rows are taken.
    broker_channel_error_retry=True,
    broker_transport_options=make_transport_options(settings.BROKER_URL),
    result_backend=None,
    # Beat would otherwise queue `celery.backend_cleanup` at four every night.
    result_expires=None,
    task_ignore_result=True,
    task_store_errors_even_if_ignored=False,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_soft_time_limit=settings.FAILSOFT_TASK_SOFT_LIMIT_SECONDS,
    task_time_limit=settings.FAILSOFT_TASK_HARD_LIMIT_SECONDS,
    task_serializer="json",
    accept_content=["json"],
    task_queues=make_queues(settings.BROKER_URL),
    task_default_queue="fold",
    task_routes=(ROUTES,),
    task_annotations={name: {"Strategy": TickStrategy} for name, _ in BEAT},
    worker_prefetch_multiplier=1,
    worker_proc_alive_timeout=START_SECONDS,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_enable_remote_control=False,
    enable_utc=True,
    timezone="UTC",
    beat_schedule=make_schedule(),
    beat_scheduler="config.beat:SteadyScheduler",
    # Celery would open a connection for every task; `keep_connections` follows Django's rules.
    CELERY_DB_REUSE_MAX=sys.maxsize,
)
app.autodiscover_tasks()
