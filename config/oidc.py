"""Sign-in by OpenID Connect; unknown users need an invitation."""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.http import HttpRequest
from django.shortcuts import render

from diagnostics.accounts.invitations import invitation_in
from diagnostics.outbound.credentials import read_credential


class KnownPeopleAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # untyped base
    """Maps an account of the issuer to a user by a verified address of an allowed domain."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: object) -> bool:
        return invitation_in(request.session) is not None

    def list_apps(self, *args: object, **kwargs: object) -> list[Any]:
        """Return the apps, with the client secret read from its reference."""
        apps: list[Any] = super().list_apps(*args, **kwargs)
        reference = settings.FAILSOFT_OIDC_CLIENT_SECRET
        for app in apps:
            if reference and app.provider == "openid_connect":
                app.secret = read_credential(reference, "oidc_secret")
        return apps

    def pre_social_login(
        self,
        request: HttpRequest,
        sociallogin: Any,  # noqa: ANN401 - untyped
    ) -> None:
        """Connect the account of the issuer to a user, or refuse it."""
        address = verified_address(sociallogin)
        if address is None or not is_allowed(address):
            raise ImmediateHttpResponse(
                render(request, "socialaccount/not_allowed.html", status=403)
            )
        if sociallogin.is_existing:
            return
        # Whoever only typed the address of a stranger would share their account with them.
        owner = EmailAddress.objects.filter(
            email__iexact=address, verified=True, user__is_active=True
        ).first()
        if owner:
            sociallogin.connect(request, owner.user)


def verified_address(sociallogin: Any) -> str | None:  # noqa: ANN401 - untyped
    verified = (
        address.email for address in sociallogin.email_addresses if address.verified is True
    )
    return next(verified, None)


def is_allowed(address: str) -> bool:
    """Whether addresses of this domain may sign in."""
    allowed = settings.FAILSOFT_OIDC_ALLOWED_DOMAINS
    return not allowed or address.rpartition("@")[2].lower() in allowed
