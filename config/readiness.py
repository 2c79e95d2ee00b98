"""Is this process alive, and is the whole product ready?"""

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from datetime import timedelta
from functools import partial

import httpx
from django.conf import settings
from django.db import DatabaseError, connection, connections, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents.goals.models import Goal
from config import ALIVE
from config.celery import PINGED_QUEUES, app
from config.local.folder import Folder
from diagnostics import clock
from diagnostics.alerting.dead_man import MISSED, OVERDUE, overdue_notifications
from diagnostics.clock import DatabaseNow
from diagnostics.figures import plural
from diagnostics.store.models import EVALUATOR, Heartbeat, queue_heartbeat, worker_heartbeat
from plans.models.run import Run, RunStep

Part = dict[str, object]
Parts = dict[str, Part]

PROBE_SECONDS = 2.0
# They report to the database; waiting for it once is enough.
UNSEEN: Part = {"ok": False, "reason": "unknown while the database does not answer"}
SILENT: Part = {"ok": False, "reason": f"no answer within {PROBE_SECONDS:.0f} s"}
HEARTBEAT_AGE = timedelta(seconds=20)
# PostgreSQL needs a segment of its log to go on.
LEAST_FREE_BYTES = 16 << 20
DISK_FULL, READ_ONLY = "53100", "25006"
# More rows than fit into the memory allowed: the server writes them to its disk.
SPILL = "SELECT count(*) FROM generate_series(1, 8192)"


class NotReadyError(Exception):
    """A part does not answer; the message says what is wrong and what to do."""


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer as long as this process does, with the product's version."""
    return HttpResponse(ALIVE, content_type="text/plain")


def _probe_database() -> None:
    folder = Folder(settings.FAILSOFT_DATA_DIR).postgres
    is_ours = settings.FAILSOFT_LOCAL_STACK and folder.is_dir()
    if is_ours and shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
        raise NotReadyError(f"disk full: {folder}")
    try:
        _write_a_little()
    except DatabaseError as error:
        state = getattr(error.__cause__, "sqlstate", None)
        if state == DISK_FULL:
            where = folder if is_ours else "the database server's"
            raise NotReadyError(f"disk full: {where}") from error
        if state == READ_ONLY:
            raise NotReadyError("the database is read-only") from error
        raise


def _write_a_little() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '64kB'")
        cursor.execute(SPILL)
        # Refused where nothing may be written; it locks no row.
        cursor.execute("UPDATE diagnostics_heartbeat SET at = at WHERE false")


def _probe_broker() -> None:
    with app.connection_for_write(transport_options={"max_retries": 1}) as broker:
        broker.ensure_connection(max_retries=1, timeout=int(PROBE_SECONDS))


def _is_fresh(name: str, age: timedelta = HEARTBEAT_AGE) -> bool:
    return Heartbeat.objects.filter(name=name, at__gte=clock.now() - age).exists()


def _probe_heartbeat(name: str, age: timedelta = HEARTBEAT_AGE) -> None:
    if not _is_fresh(name, age):
        late = f"the {name} has not reported for {age.total_seconds():.0f} s"
        raise _missing(name, f"no {name} has reported yet", late)


def _missing(heartbeat: str, never: str, late: str) -> NotReadyError:
    is_known = Heartbeat.objects.filter(name=heartbeat).exists()
    return NotReadyError(late if is_known else never)


def _probe_upkeep() -> str | None:
    """Judge the workers of upkeep: one takes messages, or lives and has too many."""
    if not _is_fresh("worker") and _is_fresh(worker_heartbeat("fold")):
        return "busy"
    _probe_heartbeat("worker")
    return None


def _probe_queue(queue: str) -> str | None:
    """Judge the workers of a queue: one takes messages, works, or lives and is busy.

    A worker that leaves messages waiting though it has room does not report itself alive.
    """
    name = queue_heartbeat(queue)
    if _is_fresh(name) or _is_at_work(queue):
        return None
    if _is_fresh(worker_heartbeat(queue)):
        return f"busy: {plural(*_backlog(queue))} waiting"
    who, seconds = f"no worker of the queue {queue}", HEARTBEAT_AGE.total_seconds()
    late = f"{who} has taken a message for {seconds:.0f} s"
    raise _missing(name, f"{who} has reported yet", late)


def _backlog(queue: str) -> tuple[int, str]:
    """Count what the rows say is still to be begun."""
    if queue == "plan":
        return Goal.objects.filter(status=Goal.Status.QUEUED).count(), "goal"
    return Run.objects.filter(state=Run.State.QUEUED).count(), "plan run"


def _probe_notifications() -> None:
    """Judge the senders: what is due goes out, where its channel works."""
    waiting = overdue_notifications(clock.now()).count()
    if waiting:
        minutes = int(OVERDUE.total_seconds() / 60)
        raise NotReadyError(f"{plural(waiting, 'notification')} due for more than {minutes} min")


def _is_at_work(queue: str) -> bool:
    held = {"lease_until__gt": DatabaseNow()}
    if queue == "plan":
        return Goal.objects.filter(status=Goal.Status.RUNNING, **held).exists()
    running = Run.objects.filter(state=Run.State.RUNNING, **held)
    started = RunStep.objects.filter(state=RunStep.State.STARTED, **held)
    return running.exists() or started.exists()


def _probe_model() -> None:
    key = settings.FAILSOFT_MODEL_KEY
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = f"{settings.FAILSOFT_MODEL_URL}/v1/models"
    answer = httpx.get(url, headers=headers, timeout=PROBE_SECONDS, trust_env=False)
    answer.raise_for_status()


def _state(probe: Callable[[], str | None]) -> Part:
    try:
        note = probe()
    except NotReadyError as error:
        return {"ok": False, "reason": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever it is, the part is not ready
        # The kind alone: a driver's message can hold an address with its password.
        return {"ok": False, "reason": type(error).__name__}
    return {"ok": True, "note": note} if note else {"ok": True}


ROWS: dict[str, Callable[[], str | None]] = {
    "worker": _probe_upkeep,
    "beat": lambda: _probe_heartbeat("beat"),
    EVALUATOR: lambda: _probe_heartbeat(EVALUATOR, MISSED),
    **{queue: partial(_probe_queue, queue) for queue in PINGED_QUEUES},
    "notify": _probe_notifications,
}


def judge_rows() -> Parts:
    """Judge the database and every part that reports to it."""
    database = _state(_probe_database)
    if not database["ok"]:
        return {"database": database, **dict.fromkeys(ROWS, UNSEEN)}
    return {"database": database} | {name: _state(ROWS[name]) for name in ROWS}


# Each is asked by a thread of its own, so that one that hangs delays no other.
PROBES: dict[str, Callable[[], Parts]] = {
    "database": judge_rows,
    "broker": lambda: {"broker": _state(_probe_broker)},
    "model": lambda: {"model": _state(_probe_model)},
}
_asking: dict[str, Future[Parts]] = {}
_lock = threading.Lock()


def _ask(name: str) -> Future[Parts]:
    """Begin to ask, unless the thread that asked before still waits for an answer."""
    with _lock:
        answer = _asking.get(name)
        if answer is None or answer.done():
            answer = _asking[name] = Future()
            threading.Thread(
                target=_settle, args=(name, answer), name=f"probe-{name}", daemon=True
            ).start()
        return answer


def _settle(name: str, answer: Future[Parts]) -> None:
    try:
        answer.set_result(PROBES[name]())
    except Exception as error:  # noqa: BLE001 - whoever waits gets it
        answer.set_exception(error)
    finally:
        connections.close_all()


def judge_all() -> Parts:
    """Ask everybody side by side; who does not answer in time is not ready."""
    names = [name for name in PROBES if name != "model" or settings.FAILSOFT_MODEL_URL]
    answers = {name: _ask(name) for name in names}
    wait(answers.values(), PROBE_SECONDS)
    parts: Parts = {}
    for name, answer in answers.items():
        late = {name: SILENT, **(dict.fromkeys(ROWS, UNSEEN) if name == "database" else {})}
        parts |= answer.result() if answer.done() else late
    return parts


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 when every part is ready, else 503; the body names each part."""
    parts = judge_all()
    ready = all(part["ok"] for part in parts.values())
    return JsonResponse({"ready": ready, "parts": parts}, status=200 if ready else 503)
