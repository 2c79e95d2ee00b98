"""Running what workers would run, message by message, in the test's own process."""

from base64 import b64encode
from typing import Any
from uuid import UUID

from diagnostics import clock
from diagnostics.store.models import OutboxMessage
from diagnostics.tasks import ping_queue
from plans.models.run import Run
from plans.runs import running
from plans.runs.submission import EXECUTE_TASK, QUEUE, STEPS_TASK, submit_run

TASKS = (EXECUTE_TASK, STEPS_TASK)
# Of 32 bytes, as every key of the working store.
OTHER_KEY = b64encode(bytes(32)).decode()


def deliver(most: int = 10_000) -> int:
    """Do what waits in the outbox for the runners, oldest first; return how much."""
    done = 0
    while done < most:
        message = OutboxMessage.objects.filter(task__in=TASKS).order_by("id").first()
        if message is None:
            break
        message.delete()
        receive(message)
        done += 1
    return done


def receive(message: OutboxMessage) -> None:
    """Do what one message asks for."""
    run_id = UUID(message.kwargs["run_id"])
    if message.task == EXECUTE_TASK:
        running.execute_run(run_id)
    else:
        running.execute_steps(run_id, message.kwargs["positions"])


def run_through(project_id: int, payload: object, runner: str, **options: Any) -> Run:
    """Submit a plan and let its runner go through it."""
    run = submit_run(project_id, payload, "c", runner=runner, **options)
    deliver()
    run.refresh_from_db()
    return run


def let_marks_pass(queue: str = QUEUE) -> None:
    """Let workers take what is in a queue up to now, the mark behind it too."""
    ping_queue(queue, clock.now().isoformat())
