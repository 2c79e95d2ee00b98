"""What rollup rows are counted by: a series, and a version of what was asked.

The rollup tables themselves are partitioned and written by plain SQL only: the migration
that makes them says what each column counts, `diagnostics.core.rollups` lists them.
"""

from django.db import models
from django.db.models.functions import Now


class Series(models.Model):
    """What every rate is told by: (environment, node, provider, model) of a project."""

    project = models.ForeignKey(
        "diagnostics.Project", models.CASCADE, related_name="+", db_index=False
    )
    # md5 of the JSON array of the four: texts may be too long for an index.
    key = models.UUIDField()
    environment = models.TextField(null=True, blank=True)
    node = models.TextField()
    provider = models.TextField(null=True, blank=True)
    model = models.TextField(null=True, blank=True)
    first_seen = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "diagnostics_series"
        verbose_name_plural = "series"
        constraints = [
            # Read by every fold.
            models.UniqueConstraint(fields=["project", "key"], name="diagnostics_series_once"),
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} {self.node}"


class Version(models.Model):
    """What changes from one deploy to the next: prompt, schema, source and its release."""

    project = models.ForeignKey(
        "diagnostics.Project", models.CASCADE, related_name="+", db_index=False
    )
    # md5 of the JSON array of the five.
    key = models.UUIDField()
    prompt_version = models.TextField(null=True, blank=True)
    schema = models.TextField(null=True, blank=True)
    schema_version = models.TextField(null=True, blank=True)
    source = models.TextField(null=True, blank=True)
    release = models.TextField(null=True, blank=True)
    first_seen = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "diagnostics_version"
        constraints = [
            # Read by every fold.
            models.UniqueConstraint(fields=["project", "key"], name="diagnostics_version_once"),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.release} {self.prompt_version}"
