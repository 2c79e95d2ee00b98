"""A project is the tenant: every row belongs to one, every query names one."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from diagnostics.models.redacted import RedactedCharField


class Project(models.Model):
    """One tenant."""

    slug = models.SlugField(max_length=63, unique=True)
    name = RedactedCharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's role in a project."""

    class Role(models.TextChoices):
        """What a member may do: look, act on goals, or change settings."""

        VIEWER = "viewer"
        OPERATOR = "operator"
        ADMIN = "admin"

    project = models.ForeignKey(Project, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "user"], name="diagnostics_membership_once_a_project"
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=["viewer", "operator", "admin"]),
                name="diagnostics_membership_role_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.project} as {self.role}"
