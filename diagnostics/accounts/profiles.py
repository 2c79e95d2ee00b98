"""Time zone and theme of a user: a row, and a copy in each session to save a query per page."""

from typing import Any
from zoneinfo import available_timezones

from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.db.models import Q

from diagnostics.accounts.models import Profile

ZONE, THEME = "zone", "theme"
# Session key: the notice about local mode was dismissed.
NOTICE_DISMISSED = "notice_dismissed"


def is_zone(name: str) -> bool:
    """Whether this is the IANA name of a zone; empty is the browser's."""
    return not name or name in available_timezones()


def profile_of(user: User) -> Profile:
    """Return a user's profile; an unsaved one uses the settings of the browser."""
    return Profile.objects.filter(user=user).first() or Profile(user=user)


def give_address(user: User) -> None:
    """Make a user the owner of the address that an administrator set, for single sign-on."""
    EmailAddress.objects.filter(Q(user=user) | Q(email__iexact=user.email)).delete()
    if user.email:
        EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)


def remember(session: Any, profile: Profile) -> None:  # noqa: ANN401 - any session store
    session[ZONE], session[THEME] = profile.zone, profile.theme
