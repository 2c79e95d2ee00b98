"""The working store: what execution needs raw, encrypted and soon deleted (X-17)."""

from django.db import models
from django.db.models.functions import Now

from diagnostics.models import Project


class WorkingItem(models.Model):
    """One encrypted value of one owner, such as `goal:<id>` or `run:<id>`."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    owner = models.CharField(max_length=80)
    name = models.CharField(max_length=200)
    ciphertext = models.BinaryField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    # Null while the owner is alive; set when it ends.
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "owner", "name"],
                name="plans_working_item_named_once",
            ),
        ]
        indexes = [
            # Read by the purge of what has expired.
            models.Index(
                fields=["expires_at"],
                condition=models.Q(expires_at__isnull=False),
                name="plans_working_item_expiry",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.owner} {self.name}"
