"""A key opens one project to an agent; only its hash is kept."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from diagnostics.models.project import Project
from diagnostics.models.redacted import RedactedCharField


class ApiKey(models.Model):
    """The public half of `fs_<key_id>_<secret>` and the SHA-256 of the secret half."""

    key_id = models.CharField(max_length=32, unique=True)
    project = models.ForeignKey(Project, models.CASCADE, related_name="api_keys")
    name = RedactedCharField(max_length=200)
    secret_hash = models.BinaryField(max_length=32)
    scopes = ArrayField(models.CharField(max_length=16))
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Written at most once a minute, so that a busy key is not a hot row.
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API key"
        verbose_name_plural = "API keys"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(scopes__contained_by=["ingest", "read", "admin"]),
                name="diagnostics_api_key_scopes_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.key_id})"
