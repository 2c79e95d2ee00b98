"""What a project may send, what it has sent, and how far each key's bucket is filled.

Limits bound the senders, never the counting: events that are accepted are all counted.
"""

from django.db import models

from diagnostics.models.api_key import ApiKey
from diagnostics.models.project import Project


class Quota(models.Model):
    """The limits of one project; null stands for the installation's setting, 0 for none."""

    project = models.OneToOneField(Project, models.CASCADE, primary_key=True, related_name="quota")
    key_events_per_second = models.PositiveIntegerField(null=True, blank=True)
    key_burst_events = models.PositiveIntegerField(null=True, blank=True)
    events_per_day = models.PositiveBigIntegerField(null=True, blank=True)
    events_per_month = models.PositiveBigIntegerField(null=True, blank=True)
    # Above this rate only a share of the previews is kept.
    spike_events_per_minute = models.PositiveIntegerField(null=True, blank=True)

    def __str__(self) -> str:
        return f"quota of {self.project}"


class Usage(models.Model):
    """Events of one project on one day (UTC) and in the minute that runs now."""

    pk = models.CompositePrimaryKey("project", "day")
    project = models.ForeignKey(Project, models.CASCADE, related_name="usage")
    day = models.DateField()
    events = models.BigIntegerField(default=0)
    sampled_out = models.BigIntegerField(default=0)
    refused = models.BigIntegerField(default=0)
    minute_at = models.DateTimeField(null=True)
    minute_events = models.BigIntegerField(default=0)
    last_minute_events = models.BigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "usage"

    def __str__(self) -> str:
        return f"{self.project} on {self.day}: {self.events}"


class KeyBucket(models.Model):
    """The token bucket of one key, shared by every process (S5)."""

    api_key = models.OneToOneField(ApiKey, models.CASCADE, primary_key=True, related_name="bucket")
    tokens = models.FloatField()
    refilled_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"bucket of {self.api_key}"
