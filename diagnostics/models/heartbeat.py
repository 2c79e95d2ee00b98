"""When each part that has no port of its own was last seen working (C5)."""

from django.db import models


class Heartbeat(models.Model):
    """A row a part: `beat` when a slot was sent, `worker` when one was executed.

    `queue:<name>` when a worker of that queue has taken a message.
    """

    name = models.CharField(max_length=64, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


def queue_heartbeat(queue: str) -> str:
    """Return the name of the row of a queue's workers."""
    return f"queue:{queue}"
