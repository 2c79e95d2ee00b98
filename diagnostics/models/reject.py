"""What was refused at the door: its redacted head, and why."""

from django.db import models

from diagnostics.models.api_key import ApiKey
from diagnostics.models.project import Project


class Reject(models.Model):
    """One refused request, or one refused item of a batch."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="rejects", db_index=False)
    api_key = models.ForeignKey(
        ApiKey, models.SET_NULL, related_name="+", null=True, db_index=False
    )
    received_at = models.DateTimeField()
    # The path that was posted to, without the query.
    endpoint = models.CharField(max_length=64)
    http_status = models.PositiveSmallIntegerField()
    source = models.TextField(null=True)
    # Of the item in its batch; null when the whole request was refused.
    item_index = models.IntegerField(null=True)
    event_id = models.TextField(null=True)
    code = models.TextField()
    path = models.TextField()
    message = models.TextField()
    errors = models.JSONField(default=list)
    head = models.TextField()
    size_bytes = models.IntegerField()

    class Meta:
        indexes = [
            # Read by the inbox, newest first, and by the bound that drops the oldest.
            models.Index(fields=["project", "-id"], name="diagnostics_reject_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.code} at {self.path or 'body'}"
