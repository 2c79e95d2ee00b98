"""Signing in: nobody makes an account of their own, unless somebody invited them."""

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, tzinfo
from typing import Any

import structlog
from allauth.account.adapter import DefaultAccountAdapter, get_adapter
from allauth.account.internal.flows.login import (
    AUTHENTICATION_METHODS_SESSION_KEY,
    get_authentication_records,
)
from allauth.core.internal.ratelimit import Rate, get_cache_key
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.models import AbstractBaseUser, User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django_htmx.http import HttpResponseClientRefresh

from diagnostics.accounts.audit_log import from_address, note
from diagnostics.accounts.invitations import invitation_in
from diagnostics.accounts.profiles import ZONE, profile_of, remember
from diagnostics.selection.ranges import read_zone

Respond = Callable[[HttpRequest], HttpResponse]
STAMPS = "stamps"
POLL = "X-Poll"
# It refreshes for ever and reads no session: it keeps none open, and ends none.
WALLBOARD = "/wallboard/"
# A session is written at most once in so long.
PRECISION_SECONDS = 60
ENDED = "You were signed out: the session was idle or has expired."


def stamp(session: Any, now: float) -> None:  # noqa: ANN401 - any session store
    """Note the beginning of a session."""
    session[STAMPS] = [now, now]


def is_over(began: float, seen: float, now: float) -> bool:
    """Whether a session has lasted, or lain idle, for too long."""
    longest: int = settings.FAILSOFT_SESSION_SECONDS
    idle: int = settings.FAILSOFT_IDLE_SECONDS
    return now - began >= longest or now - seen >= idle


class SessionLimits:
    """Ends sessions in time, notes activity and from where a change came, sets the zone."""

    def __init__(self, get_response: Respond) -> None:
        """Remember the next part."""
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer, or lead to signing in anew."""
        ended = _look_at(request)
        if ended is not None:
            return ended
        with from_address(address_of(request)), timezone.override(zone_for(request)):
            return self.get_response(request)


def zone_for(request: HttpRequest) -> tzinfo:
    """Return the zone of a page: the one that its address asks for, else the reader's."""
    for name in (request.GET.get("tz"), getattr(request, "zone", "")):
        with suppress(ValueError):
            if name:
                return read_zone(name)
    return UTC


def address_of(request: HttpRequest) -> str | None:
    """Return the client's address as far as trusted proxies tell it."""
    try:
        return str(get_adapter().get_client_ip(request))
    except PermissionDenied:
        return None


def _look_at(request: HttpRequest) -> HttpResponse | None:
    """End the session when it is time; otherwise note that somebody was here."""
    if settings.SESSION_COOKIE_NAME not in request.COOKIES or request.path.startswith(WALLBOARD):
        return None
    if not request.user.is_authenticated:
        return None
    request.zone = request.session.get(ZONE, "")  # type: ignore[attr-defined]  # read by `zone_for`
    now = time.time()
    # Sessions made otherwise than by signing in (a command, a test) have no stamps yet.
    login = request.user.last_login
    made = login.timestamp() if login else now
    began, seen = request.session.get(STAMPS, (made, made))
    if is_over(began, seen, now):
        return _end(request)
    if now - seen >= PRECISION_SECONDS and POLL not in request.headers:
        request.session[STAMPS] = [began, now]
        mine = UserSession.objects.filter(session_key=request.session.session_key)
        mine.update(last_seen_at=timezone.now())
    return None


def _end(request: HttpRequest) -> HttpResponse:
    UserSession.objects.filter(session_key=request.session.session_key).delete()
    logout(request)
    messages.info(request, ENDED)
    if request.headers.get("HX-Request"):
        return HttpResponseClientRefresh()
    return redirect_to_login(request.get_full_path())


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
    """Return the key under which bad sign-ins of a name are counted."""
    return f"sign-in:{login.lower()}"


def attempts_cache_key(rate: Rate, key: str) -> str:
    """Return the place in the cache where allauth counts by such a key."""
    # Of a rate by key, nothing of the request is asked.
    nobody = HttpRequest()
    return str(
        get_cache_key(nobody, app="allauth.account", action="login_failed", rate=rate, key=key)
    )
