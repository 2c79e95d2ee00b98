"""How a person wants to see the console."""

from django.conf import settings
from django.db import models


class Profile(models.Model):
    """Zone and theme of one person; without a row the browser decides both."""

    class Theme(models.TextChoices):
        """Which of the two palettes."""

        SYSTEM = "system"
        LIGHT = "light"
        DARK = "dark"

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        primary_key=True,
        related_name="profile",
    )
    # An IANA name; empty is the browser's.
    zone = models.CharField(max_length=64, blank=True, default="")
    theme = models.CharField(max_length=8, choices=Theme, default=Theme.SYSTEM, db_default="system")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(theme__in=["system", "light", "dark"]),
                name="diagnostics_profile_theme_known",
            ),
        ]

    def __str__(self) -> str:
        return f"profile of {self.user_id}"
