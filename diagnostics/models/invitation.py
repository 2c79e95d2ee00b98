"""An invitation: a link that makes one person a member of one project, once."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from diagnostics.models.project import Membership, Project


class Invitation(models.Model):
    """Only the SHA-256 of the link's secret is kept; `used_at` is set by whoever wins."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="invitations", db_index=False)
    role = models.CharField(max_length=16, choices=Membership.Role)
    email = models.EmailField(blank=True, default="")
    token_hash = models.BinaryField(max_length=32, unique=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, related_name="+", null=True
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    used_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, related_name="+", null=True
    )
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(role__in=["viewer", "operator", "admin"]),
                name="diagnostics_invitation_role_known",
            ),
        ]
        indexes = [
            # Read by the members page: the open ones, newest first.
            models.Index(
                fields=["project", "-created_at"],
                condition=models.Q(used_at=None, revoked_at=None),
                name="diagnostics_invitation_open",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} of {self.project_id}"
