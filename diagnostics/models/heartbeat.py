"""When each part that has no port of its own was last seen working (C5)."""

from django.db import models


class Heartbeat(models.Model):
    """A row a part: `beat` when a slot was sent, `worker` when one was executed.

    `queue:<name>` when a worker of that queue has taken a mark, `drained:<name>` the time
    that the latest of these marks carried (diagnostics.queue_marks), `worker:<name>` while
    a worker of that queue is alive and leaves nothing waiting that it has room for.
    """

    name = models.CharField(max_length=64, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


def queue_heartbeat(queue: str) -> str:
    """Return the name of the row of a queue's workers."""
    return f"queue:{queue}"


def drained_heartbeat(queue: str) -> str:
    """Return the name of the row that says up to when a queue has been drained."""
    return f"drained:{queue}"


def worker_heartbeat(queue: str) -> str:
    """Return the name of the row that living workers of a queue keep."""
    return f"worker:{queue}"
