"""Second factors: stored encrypted, and required for staff."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import structlog
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from allauth.mfa.utils import decrypt, is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from diagnostics.outbound.credentials import WorkingKeyError, seal, unseal

log = structlog.get_logger(__name__)

Respond = Callable[[HttpRequest], HttpResponse]

# Pages that work without a second factor: its setup, sign-out, health.
OPEN_TO_ALL = ("/accounts/", "/static/", "/healthz", "/readyz", "/metrics")
WANTED = "Set up MFA first: it is required for staff accounts."
IDENTITY = ("failsoft", "mfa")


class SealedFactors(DefaultMFAAdapter):  # type: ignore[misc]  # untyped base
    """Encrypts the seeds of codes with FAILSOFT_WORKING_KEY."""

    # The term of the console.
    error_messages = {
        name: str(text).replace("two-factor authentication", "MFA")
        for name, text in DefaultMFAAdapter.error_messages.items()
    }

    def encrypt(self, text: str) -> str:
        return seal(IDENTITY, text).hex()

    def decrypt(self, encrypted_text: str) -> str:
        return str(unseal(IDENTITY, bytes.fromhex(encrypted_text)))


def _if_readable(read: Callable[..., Any], otherwise: object) -> Callable[..., Any]:
    """Return `otherwise` instead of what another key sealed, with the reason in the log."""

    @wraps(read)
    def read_or_log(*arguments: object) -> object:
        try:
            return read(*arguments)
        except WorkingKeyError as error:
            log.error("second_factor_unreadable", reason=str(error))  # noqa: TRY400
            return otherwise

    return read_or_log


# The adapter decrypts both alike, and allauth tries one after the other: what cannot be read
# takes no code and shows none, but must not keep the next from being tried. Pages say which.
TOTP.validate_code = _if_readable(TOTP.validate_code, otherwise=False)
TOTP.is_readable = _if_readable(lambda app: bool(decrypt(app.instance.data["secret"])), False)
RecoveryCodes.generate_codes = _if_readable(RecoveryCodes.generate_codes, otherwise=())
RecoveryCodes.is_readable = lambda codes: bool(codes.generate_codes())


class RequireSecondFactor:
    """Redirects staff without a second factor to its setup."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return _redirect_to_setup(request) or self.get_response(request)


def _redirect_to_setup(request: HttpRequest) -> HttpResponse | None:
    if not settings.FAILSOFT_REQUIRE_MFA or request.path.startswith(OPEN_TO_ALL):
        return None
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return None
    if not request.user.is_staff or is_mfa_enabled(request.user):
        return None
    messages.warning(request, WANTED)
    target = reverse("mfa_index")
    if request.headers.get("HX-Request"):
        return HttpResponseClientRedirect(target)
    return redirect(target)
