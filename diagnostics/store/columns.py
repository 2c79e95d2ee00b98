"""A column that many tables have."""

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models

if TYPE_CHECKING:
    Person = models.ForeignKey[User | None, User | None]


def person(*, blank: bool = True) -> "Person":
    """Return a column for somebody who did something; null: nobody, or one who has left."""
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, related_name="+", null=True, blank=blank
    )
