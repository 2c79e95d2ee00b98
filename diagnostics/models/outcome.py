"""Pre-counted goal runs: a busy agent need not post every success."""

from django.db import models


class Outcome(models.Model):
    """The runs of one minute of one series, as its source counted them."""

    project = models.ForeignKey(
        "diagnostics.Project",
        models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    source = models.TextField()
    minute = models.DateTimeField()
    sequence = models.IntegerField()
    received_at = models.DateTimeField()
    content_hash = models.BinaryField(max_length=32)
    environment = models.TextField(null=True)
    node = models.TextField()
    provider = models.TextField(null=True)
    model = models.TextField(null=True)
    release = models.TextField(null=True)
    prompt_version = models.TextField(null=True)
    schema = models.TextField(null=True)
    schema_version = models.TextField(null=True)
    ok_first = models.IntegerField(default=0)
    repaired = models.IntegerField(default=0)
    degraded = models.IntegerField(default=0)
    stubbed = models.IntegerField(default=0)
    circuit_open = models.IntegerField(default=0)
    provider_failed = models.IntegerField(default=0)
    budget_exhausted = models.IntegerField(default=0)

    class Meta:
        constraints = [
            # Also read by the purge, oldest first within a source.
            models.UniqueConstraint(
                fields=["project", "source", "minute", "sequence"],
                name="diagnostics_outcome_once",
            ),
        ]
        indexes = [
            # Read by the daily purge.
            models.Index(fields=["minute"], name="diagnostics_outcome_age"),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.minute:%Y-%m-%d %H:%M} #{self.sequence}"
