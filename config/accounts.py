"""Signing in: nobody makes an account of their own, unless somebody invited them."""

import time
from typing import Any

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import (
    AUTHENTICATION_METHODS_SESSION_KEY,
    get_authentication_records,
)
from allauth.core.internal.ratelimit import Rate, get_cache_key
from django.contrib.auth.models import AbstractBaseUser, User
from django.http import HttpRequest

from config.sessions import stamp
from diagnostics.access.auditing import note
from diagnostics.access.inviting import invitation_in
from diagnostics.access.profiles import profile_of, remember

logger = structlog.get_logger(__name__)


class ClosedAccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # untyped base
    """Accounts are made by an administrator, or by accepting an invitation."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Let those in who hold an invitation that is open."""
        return invitation_in(request.session) is not None

    def login(self, request: HttpRequest, user: AbstractBaseUser) -> None:
        """Sign in and note when the session began."""
        super().login(request, user)
        stamp(request.session, time.time())
        _count_as_confirmed(request)
        if isinstance(user, User):
            remember(request.session, profile_of(user))
        note(None, user, "sign_in.succeeded", user.get_username())

    def authentication_failed(
        self,
        request: HttpRequest,
        **credentials: Any,  # noqa: ANN401 - as allauth has it
    ) -> None:
        """Keep what was tried out of the log: some type their password as their name."""
        logger.info("sign_in_failed", address=self.get_client_ip(request))

    def _get_login_attempts_cache_key(
        self,
        request: HttpRequest,
        **credentials: Any,  # noqa: ANN401 - as allauth has it
    ) -> str:
        """Count by name alone: another host name in the request is no new beginning."""
        return attempts_key(credentials.get("email", credentials.get("username", "")))


def _count_as_confirmed(request: HttpRequest) -> None:
    """Whoever has just signed in need not prove it once more for the next minutes."""
    records = get_authentication_records(request, request.user)
    for record in records:
        if record["method"] in {"password", "mfa"}:
            record["reauthenticated"] = True
    request.session[AUTHENTICATION_METHODS_SESSION_KEY] = records


def attempts_key(login: str) -> str:
    """Give the key under which bad sign-ins of a name are counted."""
    return f"sign-in:{login.lower()}"


def attempts_cache_key(rate: Rate, key: str) -> str:
    """Give the place in the cache where allauth counts by such a key."""
    # Of a rate by key, nothing of the request is asked.
    nobody = HttpRequest()
    return str(
        get_cache_key(nobody, app="allauth.account", action="login_failed", rate=rate, key=key)
    )
