"""Sign-in by OpenID Connect; unknown users need an invitation."""

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import requests
import structlog
from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.providers.base import AuthError
from allauth.socialaccount.providers.openid_connect import views
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from config.sign_in import OIDC
from diagnostics.accounts.invitations import invitation_in
from diagnostics.outbound.credentials import CredentialError, read_credential

logger = structlog.get_logger(__name__)
Claims = Mapping[str, Any]
# Microsoft Entra ID knows the second alone, and only if it is added to the token.
VERIFIED_CLAIMS = ("email_verified", "xms_edov")
# Texts of Cognito and Entra ID.
TRUE = ("true", "1")
ERROR_CODE = re.compile(r"[a-z_]{1,40}")
DETAIL_CHARACTERS = 500


class KnownPeopleAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # untyped base
    """Maps an account of the issuer to a user by a verified address of an allowed domain."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: object) -> bool:
        return invitation_in(request.session) is not None

    def list_apps(self, *args: object, **kwargs: object) -> list[Any]:
        """Return the apps, with the client secret; a missing one stops no other sign-in."""
        apps: list[Any] = super().list_apps(*args, **kwargs)
        for app in apps:
            if app.provider == "openid_connect":
                with suppress(CredentialError):
                    app.secret = _read_secret()
        return apps

    def get_requests_session(self) -> requests.Session:
        """Return a session that trusts the authorities of the other connections."""
        session: requests.Session = super().get_requests_session()
        if authorities := os.environ.get("SSL_CERT_FILE"):
            # Of a request: those of a session count less than variables of requests' own.
            session.request = partial(session.request, verify=authorities)  # type: ignore[method-assign]
        return session

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: object,
        error: object = None,
        exception: Exception | None = None,
        extra_context: object = None,
    ) -> None:
        """Log what went wrong with the issuer and name its kind on the page."""
        if error == AuthError.CANCELLED:
            return
        told = [one for one in (exception, exception and exception.__cause__) if one]
        detail = "; ".join(f"{type(one).__name__}: {one}" for one in told) or " ".join(
            request.GET.get(name, "") for name in ("error", "error_description")
        )
        logger.warning(
            "single_sign_on_failed",
            issuer=settings.FAILSOFT_OIDC_ISSUER,
            detail=detail[:DETAIL_CHARACTERS],
        )
        is_lost = exception is None and "error" not in request.GET
        status = 400 if is_lost else 503
        raise _refusal(request, status, "Single sign-on failed", _reason(request, exception))

    def pre_social_login(
        self,
        request: HttpRequest,
        sociallogin: Any,  # noqa: ANN401 - untyped
    ) -> None:
        """Connect the account of the issuer to a user, or refuse it."""
        address = _allowed_address(request, sociallogin.account.extra_data)
        if sociallogin.is_existing:
            return
        # Whoever only typed the address of a stranger would share their account with them.
        owner = EmailAddress.objects.filter(
            email__iexact=address, verified=True, user__is_active=True
        ).first()
        if owner:
            sociallogin.connect(request, owner.user)
            return
        sociallogin.user.email = address
        sociallogin.email_addresses = [EmailAddress(email=address, verified=True, primary=True)]


def _read_secret() -> str:
    reference = settings.FAILSOFT_OIDC_CLIENT_SECRET
    return read_credential(reference, "oidc_secret") if reference else ""


def _reason(request: HttpRequest, exception: Exception | None) -> str:
    code = request.GET.get("error", "")
    if ERROR_CODE.fullmatch(code):
        return f"Your identity provider answered {code}."
    if isinstance(exception, requests.exceptions.SSLError):
        return (
            "The certificate of the identity provider is not trusted. If its authority is"
            " private, name it in SSL_CERT_FILE."
        )
    if isinstance(exception, requests.ConnectionError | requests.Timeout):
        return "The identity provider cannot be reached."
    if exception:
        return "The identity provider and its settings here do not fit."
    return "The sign-in began in another browser, or too long ago: sign in again."


def _allowed_address(request: HttpRequest, data: Claims) -> str:
    """Return the verified address of an allowed domain, or refuse the person with the reason."""
    claims: list[Claims] = [data.get(source) or {} for source in ("userinfo", "id_token")]
    told = [address for one in claims if isinstance(address := one.get("email"), str) and address]
    address = next((address for address in told if _is_verified(address, claims)), None)
    allowed = settings.FAILSOFT_OIDC_ALLOWED_DOMAINS
    setting, domain = "FAILSOFT_OIDC_TRUST_EMAIL", (address or "").rpartition("@")[2].lower()
    if not told:
        reason = "Your identity provider sent no email address."
    elif address is None:
        reason = "Your identity provider does not say that your email address is verified."
    elif allowed and domain not in allowed:
        setting = "FAILSOFT_OIDC_ALLOWED_DOMAINS"
        reason = f"Addresses of {domain} may not sign in here."
    else:
        return address
    names = sorted({name for one in claims for name in one})
    logger.warning("single_sign_on_refused", reason=reason, setting=setting, claims=names)
    raise _refusal(request, 403, "No access", reason)


def _refusal(request: HttpRequest, status: int, title: str, reason: str) -> ImmediateHttpResponse:
    advice = "If this stays so, ask an administrator: the web server's log has the details."
    page = {"title": title, "words": f"{reason} {advice}", "back": reverse("account_login")}
    return ImmediateHttpResponse(render(request, "notice.html", page, status=status))


def _is_verified(address: str, claims: list[Claims]) -> bool:
    """Whether all that the issuer says of an address is that it is verified."""
    said = {
        str(one[name]).lower() in TRUE
        for one in claims
        for name in VERIFIED_CLAIMS
        if one.get("email", address) == address and one.get(name) is not None
    }
    return said == {True} if said else bool(settings.FAILSOFT_OIDC_TRUST_EMAIL)


@never_cache
def begin(request: HttpRequest) -> HttpResponse:
    """Lead to the issuer by a page.

    Browsers check each redirect of a form by the policy of its page, and an issuer redirects to
    others that no setting names: its own host for sign-in, or the issuer of a customer.
    """
    answer = _ask(views.login, request)
    if answer.status_code != 302:
        return answer
    return render(request, "socialaccount/leaving.html", {"address": answer.headers["Location"]})


def end(request: HttpRequest) -> HttpResponse:
    return _ask(views.callback, request)


def _ask(view: Callable[[HttpRequest, str], HttpResponse], request: HttpRequest) -> HttpResponse:
    """Run a view of allauth; what an issuer or its settings lack is no error of ours."""
    try:
        _read_secret()
        return view(request, OIDC)
    except (requests.RequestException, CredentialError, KeyError) as error:
        answer: HttpResponse = render_authentication_error(request, None, exception=error)
        return answer
