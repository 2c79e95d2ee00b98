"""OpenID Connect signs known people in; strangers need an invitation."""

from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.shortcuts import render

from diagnostics.accounts.invitations import invitation_in
from diagnostics.outbound.credentials import read_credential


class KnownPeopleAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # untyped base
    """An issuer's person is one of ours by a verified address of an allowed domain."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: object) -> bool:
        """Let those in who hold an invitation that is open."""
        return invitation_in(request.session) is not None

    def list_apps(self, *args: object, **kwargs: object) -> list[Any]:
        """Read the client's secret where its reference points, just before it is used."""
        found: list[Any] = super().list_apps(*args, **kwargs)
        reference = settings.FAILSOFT_OIDC_CLIENT_SECRET
        for app in found:
            if reference and app.provider == "openid_connect":
                app.secret = read_credential(reference, "oidc_secret")
        return found

    def pre_social_login(
        self,
        request: HttpRequest,
        sociallogin: Any,  # noqa: ANN401 - untyped
    ) -> None:
        """Join the issuer's person to one of ours, or refuse."""
        address = verified_address(sociallogin)
        if address is None or not is_allowed(address):
            raise ImmediateHttpResponse(
                render(request, "socialaccount/not_allowed.html", status=403)
            )
        if sociallogin.is_existing:
            return
        people = get_user_model().objects.filter(email__iexact=address, is_active=True)
        # Two of one address: nobody can say which of them it is.
        if len(people) == 1:
            sociallogin.connect(request, people[0])


def verified_address(sociallogin: Any) -> str | None:  # noqa: ANN401 - untyped
    """Return the address that the issuer says it has verified."""
    found = (one.email for one in sociallogin.email_addresses if one.verified is True)
    return next(found, None)


def is_allowed(address: str) -> bool:
    """Whether addresses of this domain may sign in."""
    allowed = settings.FAILSOFT_OIDC_ALLOWED_DOMAINS
    return not allowed or address.rpartition("@")[2].lower() in allowed
