"""Is this process alive, and is the whole product ready?"""

from collections.abc import Callable
from datetime import timedelta

import httpx
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents.models import Goal
from config.celery import PINGED_QUEUES, app
from diagnostics import clock
from diagnostics.clock import DatabaseNow
from diagnostics.core.wording import plural
from diagnostics.models import Heartbeat
from diagnostics.models.heartbeat import queue_heartbeat
from diagnostics.notifications.dead_man import OVERDUE, overdue_notifications
from plans.models import Run, RunStep

PROBE_SECONDS = 2
READ_FROM_ROWS = ("worker", "beat", "evaluator", "notify", *PINGED_QUEUES)
# They report to the database; waiting for it once is enough.
UNSEEN = {"ok": False, "reason": "unknown while the database does not answer"}
HEARTBEAT_AGE = timedelta(seconds=20)
# Alerts are looked at every minute: three that were missed are too many.
EVALUATOR_AGE = timedelta(minutes=3)


class NotReadyError(Exception):
    """A part does not answer; the message says what is wrong and what to do."""


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer as long as this process does."""
    return HttpResponse("ok\n", content_type="text/plain")


def _probe_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _probe_broker() -> None:
    with app.connection_for_write(transport_options={"max_retries": 1}) as broker:
        broker.ensure_connection(max_retries=1, timeout=PROBE_SECONDS)


def _probe_heartbeat(name: str, age: timedelta = HEARTBEAT_AGE) -> None:
    row = Heartbeat.objects.filter(name=name)
    if not row.exists():
        raise NotReadyError(f"no {name} has reported yet")
    if not row.filter(at__gte=clock.now() - age).exists():
        seconds = int(age.total_seconds())
        raise NotReadyError(f"the {name} has not reported for {seconds} s")


def _probe_queue(queue: str) -> None:
    """Judge the workers of a queue: one takes messages, or holds a lease at its work."""
    row = Heartbeat.objects.filter(name=queue_heartbeat(queue))
    if row.filter(at__gte=clock.now() - HEARTBEAT_AGE).exists() or _is_at_work(queue):
        return
    if not row.exists():
        raise NotReadyError(f"no worker of the queue {queue} has reported yet")
    seconds = int(HEARTBEAT_AGE.total_seconds())
    raise NotReadyError(
        f"no worker of the queue {queue} has taken a message for {seconds} s"
    )


def _probe_notifications() -> None:
    """Judge the senders: what is due goes out, where its channel works."""
    waiting = overdue_notifications(clock.now()).count()
    if waiting:
        minutes = int(OVERDUE.total_seconds() / 60)
        raise NotReadyError(
            f"{plural(waiting, 'notification')} due for more than {minutes} min"
        )


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


def _parts() -> dict[str, Callable[[], None]]:
    parts: dict[str, Callable[[], None]] = {
        "database": _probe_database,
        "broker": _probe_broker,
        "worker": lambda: _probe_heartbeat("worker"),
        "beat": lambda: _probe_heartbeat("beat"),
        "evaluator": lambda: _probe_heartbeat("evaluator", EVALUATOR_AGE),
        "plan": lambda: _probe_queue("plan"),
        "steps": lambda: _probe_queue("steps"),
        "notify": _probe_notifications,
    }
    return parts | ({"model": _probe_model} if settings.FAILSOFT_MODEL_URL else {})


def _state(probe: Callable[[], None]) -> dict[str, object]:
    try:
        probe()
    except NotReadyError as error:
        return {"ok": False, "reason": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever it is, the part is not ready
        # The kind alone: a driver's message can hold an address with its password.
        return {"ok": False, "reason": type(error).__name__}
    return {"ok": True}


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 when every part is ready, else 503; the body names each part."""
    parts: dict[str, dict[str, object]] = {}
    for name, probe in _parts().items():
        blind = name in READ_FROM_ROWS and not parts["database"]["ok"]
        parts[name] = UNSEEN if blind else _state(probe)
    ready = all(part["ok"] for part in parts.values())
    return JsonResponse({"ready": ready, "parts": parts}, status=200 if ready else 503)
