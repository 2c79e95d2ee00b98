"""What was changed when: marks on every time axis."""

from django.db import models
from django.db.models.functions import Now

from diagnostics.core.deploys import DeployKind
from diagnostics.models.project import Project
from diagnostics.models.redacted import RedactedTextField


class Deploy(models.Model):
    """One change of a release, prompt, schema or validator."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="deploys", db_index=False)
    at = models.DateTimeField()
    kind = models.CharField(
        max_length=16, choices=[(kind.value, kind.value) for kind in DeployKind]
    )
    source = models.TextField(null=True, blank=True)
    environment = models.TextField(null=True, blank=True)
    version = models.TextField()
    note = RedactedTextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            # The same deploy told twice is one; read by every list, newest first.
            models.UniqueConstraint(
                fields=["project", "at", "kind", "source", "environment", "version"],
                name="diagnostics_deploy_once",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=[kind.value for kind in DeployKind]),
                name="diagnostics_deploy_kind_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.version}"
