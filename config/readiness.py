"""Liveness of this process, and readiness of the whole product."""

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from datetime import timedelta
from functools import partial

import httpx
import psycopg
from django.conf import settings
from django.db import DatabaseError, connection, connections, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents.goals.models import Goal
from config import ALIVE
from config.celery import PINGED_QUEUES, app
from config.database import explain_connection
from config.local.folder import Folder
from diagnostics import clock
from diagnostics.alerting.dead_man import MISSED, OVERDUE, overdue_notifications
from diagnostics.clock import DatabaseNow
from diagnostics.figures import plural
from diagnostics.store.models import EVALUATOR, Heartbeat, heartbeat_of
from diagnostics.store.outbox import broker_fault
from plans.models.run import Run, RunStep

Part = dict[str, object]
Parts = dict[str, Part]

PROBE_SECONDS = 2.0
# The state of parts that report to the database while it does not answer.
UNSEEN: Part = {"ok": False, "reason": "unknown while the database does not answer"}
SILENT: Part = {"ok": False, "reason": f"no answer within {PROBE_SECONDS:.0f} s"}
HEARTBEAT_AGE = timedelta(seconds=20)
# PostgreSQL needs space for a WAL segment.
LEAST_FREE_BYTES = 16 << 20
DISK_FULL, READ_ONLY = "53100", "25006"
# More rows than fit into work_mem, so that the server writes a temporary file.
SPILL = "SELECT count(*) FROM generate_series(1, 8192)"


class NotReadyError(Exception):
    """A part is not ready; the message has the reason."""


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse(ALIVE, content_type="text/plain")


def _probe_database() -> None:
    folder = Folder(settings.FAILSOFT_DATA_DIR).postgres
    is_ours = settings.FAILSOFT_LOCAL_STACK and folder.is_dir()
    if is_ours and shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
        raise NotReadyError(f"disk full: {folder}")
    try:
        # A new connection: a pool waits for longer than this, and then knows no reason.
        _connect()
        _test_write()
    except (DatabaseError, psycopg.Error) as error:
        state = getattr(error.__cause__, "sqlstate", None)
        if state == DISK_FULL:
            place = folder if is_ours else "the database server's"
            raise NotReadyError(f"disk full: {place}") from error
        if state == READ_ONLY:
            raise NotReadyError("the database is read-only") from error
        if reason := explain_connection(error):
            raise NotReadyError(reason) from error
        raise


def database_answers() -> bool:
    """Whether a new connection to the database is answered within PROBE_SECONDS."""
    try:
        _connect()
    except psycopg.Error:
        return False
    return True


def _connect() -> None:
    parameters = {**connection.get_connection_params(), "connect_timeout": int(PROBE_SECONDS)}
    with psycopg.connect(**parameters) as server:
        server.execute("SELECT 1")


def _test_write() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '64kB'")
        cursor.execute(SPILL)
        # Fails on a read-only database; it locks no row.
        cursor.execute("UPDATE diagnostics_heartbeat SET at = at WHERE false")


def _probe_broker() -> None:
    """Connect and declare a queue: a replica or a full broker accepts connections, too."""
    try:
        with app.connection_for_write() as broker:
            # Without a pause and a second attempt, after which nobody would wait for the reason.
            broker.ensure_connection(max_retries=0)
            app.amqp.queues["fold"](broker.default_channel).declare()
    except Exception as error:
        raise NotReadyError(broker_fault(error)) from error


def _is_fresh(name: str, age: timedelta = HEARTBEAT_AGE) -> bool:
    return Heartbeat.objects.filter(name=name, at__gte=clock.now() - age).exists()


def _probe_heartbeat(name: str, age: timedelta = HEARTBEAT_AGE, subject: str = "") -> None:
    if not _is_fresh(name, age):
        subject = subject or name
        late = f"the {subject} has not reported for {age.total_seconds():.0f} s"
        raise _missing(name, f"no {subject} has reported yet", late)


def _missing(heartbeat: str, never: str, late: str) -> NotReadyError:
    is_known = Heartbeat.objects.filter(name=heartbeat).exists()
    return NotReadyError(late if is_known else never)


def _probe_maintenance() -> str | None:
    """Check the maintenance workers; return "busy" if they are alive with a backlog."""
    if _is_fresh("worker"):
        return None
    if _is_fresh(heartbeat_of("worker", "fold")):
        return "busy"
    _probe_pool("fold")
    _probe_heartbeat("worker")
    return None


def _probe_pool(queue: str) -> None:
    if _is_fresh(heartbeat_of("pool", queue)):
        subject = f"the pool of the worker of the queue {queue}"
        raise NotReadyError(f"{subject} has no process: they are starting, or are killed")


def _probe_queue(queue: str) -> str | None:
    """Check the workers of a queue; return a note if they are alive but busy.

    A worker that has free slots but does not consume messages does not report itself alive.
    """
    name = heartbeat_of("queue", queue)
    if _is_fresh(name) or _is_at_work(queue):
        return None
    if _is_fresh(heartbeat_of("worker", queue)):
        return f"busy: {plural(*_backlog(queue))} waiting"
    _probe_pool(queue)
    subject, seconds = f"no worker of the queue {queue}", HEARTBEAT_AGE.total_seconds()
    late = f"{subject} has taken a message for {seconds:.0f} s"
    raise _missing(name, f"{subject} has reported yet", late)


def _probe_server(queue: str) -> None:
    """Check that a worker of a queue without marks is alive."""
    name = heartbeat_of("worker", queue)
    if not _is_fresh(name):
        _probe_pool(queue)
        _probe_heartbeat(name, subject=f"worker of the queue {queue}")


def _backlog(queue: str) -> tuple[int, str]:
    if queue == "plan":
        return Goal.objects.filter(status=Goal.Status.QUEUED).count(), "goal"
    return Run.objects.filter(state=Run.State.QUEUED).count(), "plan run"


def _probe_notifications() -> None:
    """Check that no notification is overdue on a working channel, and that a worker sends them."""
    _probe_server("notify")
    waiting = overdue_notifications(clock.now()).count()
    if waiting:
        minutes = int(OVERDUE.total_seconds() / 60)
        raise NotReadyError(f"{plural(waiting, 'notification')} due for more than {minutes} min")


def _is_at_work(queue: str) -> bool:
    leased = {"lease_until__gt": DatabaseNow()}
    if queue == "plan":
        return Goal.objects.filter(status=Goal.Status.RUNNING, **leased).exists()
    running = Run.objects.filter(state=Run.State.RUNNING, **leased)
    started = RunStep.objects.filter(state=RunStep.State.STARTED, **leased)
    return running.exists() or started.exists()


def _probe_model() -> None:
    key = settings.FAILSOFT_MODEL_KEY
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = f"{settings.FAILSOFT_MODEL_URL}/v1/models"
    response = httpx.get(url, headers=headers, timeout=PROBE_SECONDS, trust_env=False)
    response.raise_for_status()


def _state(probe: Callable[[], str | None]) -> Part:
    try:
        note = probe()
    except NotReadyError as error:
        return {"ok": False, "reason": str(error)}
    except Exception as error:  # noqa: BLE001 - any error means that the part is not ready
        # Only the type: the message of a driver may contain a URL with a password.
        return {"ok": False, "reason": type(error).__name__}
    return {"ok": True, "note": note} if note else {"ok": True}


ROWS: dict[str, Callable[[], str | None]] = {
    "worker": _probe_maintenance,
    "beat": lambda: _probe_heartbeat("beat"),
    EVALUATOR: lambda: _probe_heartbeat(EVALUATOR, MISSED),
    **{queue: partial(_probe_queue, queue) for queue in PINGED_QUEUES},
    "notify": _probe_notifications,
    "report": partial(_probe_server, "report"),
}


def judge_rows() -> Parts:
    """Return the state of the database and of the parts that report to it."""
    database = _state(_probe_database)
    if not database["ok"]:
        return {"database": database, **dict.fromkeys(ROWS, UNSEEN)}
    return {"database": database} | {name: _state(ROWS[name]) for name in ROWS}


# Each probe has a separate thread, so that a hanging one does not delay the others.
PROBES: dict[str, Callable[[], Parts]] = {
    "database": judge_rows,
    "broker": lambda: {"broker": _state(_probe_broker)},
    "model": lambda: {"model": _state(_probe_model)},
}
_running_probes: dict[str, Future[Parts]] = {}
_lock = threading.Lock()


def _start_probe(name: str) -> Future[Parts]:
    with _lock:
        future = _running_probes.get(name)
        if future is None or future.done():
            future = _running_probes[name] = Future()
            threading.Thread(
                target=_run_probe, args=(name, future), name=f"probe-{name}", daemon=True
            ).start()
        return future


def _run_probe(name: str, future: Future[Parts]) -> None:
    try:
        future.set_result(PROBES[name]())
    except Exception as error:  # noqa: BLE001 - raised by `result`
        future.set_exception(error)
    finally:
        connections.close_all()


def judge_all() -> Parts:
    """Run all probes in parallel; parts without an answer in time are not ready."""
    names = [name for name in PROBES if name != "model" or settings.FAILSOFT_MODEL_URL]
    futures = {name: _start_probe(name) for name in names}
    wait(futures.values(), PROBE_SECONDS)
    parts: Parts = {}
    for name, future in futures.items():
        silent_parts = {name: SILENT, **(dict.fromkeys(ROWS, UNSEEN) if name == "database" else {})}
        parts |= future.result() if future.done() else silent_parts
    return parts


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Return 200 when every part is ready, else 503; the body lists the parts."""
    parts = judge_all()
    ready = all(part["ok"] for part in parts.values())
    return JsonResponse({"ready": ready, "parts": parts}, status=200 if ready else 503)
