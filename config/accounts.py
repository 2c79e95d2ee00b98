"""Sign-in only: nobody makes an account of their own."""

from allauth.account.adapter import DefaultAccountAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.http import HttpRequest


class ClosedAccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # untyped base
    """Accounts are made by an administrator."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Refuse every sign-up."""
        return False


class ClosedSocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # untyped base
    """OpenID Connect signs known people in, it makes no accounts."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: object) -> bool:
        """Refuse every sign-up."""
        return False
