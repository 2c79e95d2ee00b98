"""What each key sent, by minute and outcome: the counts of the ingestion page."""

from django.db import models

from diagnostics.models.api_key import ApiKey
from diagnostics.models.project import Project


class KeyMinute(models.Model):
    """Items of one key and source in one minute; the rows of all slots add up."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    api_key = models.ForeignKey(ApiKey, models.CASCADE, related_name="+", db_index=False)
    source = models.CharField(max_length=200, blank=True, default="")
    minute = models.DateTimeField()
    # Processes write to different slots, so that they seldom wait for each other.
    slot = models.PositiveSmallIntegerField(default=0)
    stored = models.BigIntegerField(default=0)
    duplicate = models.BigIntegerField(default=0)
    conflict = models.BigIntegerField(default=0)
    invalid = models.BigIntegerField(default=0)
    rejected = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            # Read by the ingestion page, and by the sweep that deletes what is old.
            models.UniqueConstraint(
                fields=["project", "minute", "api_key", "source", "slot"],
                name="diagnostics_keyminute_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.api_key_id} {self.minute:%H:%M}"
