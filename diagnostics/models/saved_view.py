"""A page with its filters under a name: to open again, to share, to bind reports to."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from diagnostics.models.project import Project
from diagnostics.models.redacted import RedactedCharField


class SavedView(models.Model):
    """What somebody wants to see again: a page's URL name and its query string.

    `query` is written as `diagnostics.core.selection.Selection.query` writes it. Its
    owner changes it; when shared, every member of the project may open it.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="saved_views", db_index=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_views")
    name = RedactedCharField(max_length=100)
    page = models.CharField(max_length=64)
    query = models.TextField(blank=True, default="")
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            # Read by every filter bar: the project's views, by owner.
            models.UniqueConstraint(
                fields=["project", "owner", "name"],
                name="diagnostics_savedview_name_once_an_owner",
            ),
            models.CheckConstraint(
                condition=~models.Q(name=""), name="diagnostics_savedview_is_named"
            ),
        ]

    def __str__(self) -> str:
        return self.name
