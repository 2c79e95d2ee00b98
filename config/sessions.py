"""How long a session lasts: 12 hours at most, 30 minutes without anybody there.

A page that refreshes itself is nobody: its requests say so, and do not keep a session open.
"""

import time
from collections.abc import Callable
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django_htmx.http import HttpResponseClientRefresh

from diagnostics.access.auditing import asked_from
from diagnostics.access.profiles import ZONE

Respond = Callable[[HttpRequest], HttpResponse]

STAMPS = "stamps"
POLL = "X-Poll"
# A session is written at most once in so long.
PRECISION_SECONDS = 60
ENDED = "You were signed out: nobody was here for a while, or the day was over."


def stamp(session: Any, now: float) -> None:  # noqa: ANN401 - any session store
    """Note the beginning of a session."""
    session[STAMPS] = [now, now]


def is_over(began: float, seen: float, now: float) -> bool:
    """Say whether a session has lasted, or lain idle, for too long."""
    longest: int = settings.FAILSOFT_SESSION_SECONDS
    idle: int = settings.FAILSOFT_IDLE_SECONDS
    return now - began >= longest or now - seen >= idle


class SessionLimits:
    """Ends sessions in time, notes activity, and from where a change was asked for."""

    def __init__(self, get_response: Respond) -> None:
        """Remember the next part."""
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer, or lead to signing in anew."""
        ended = _look_at(request)
        if ended is not None:
            return ended
        with asked_from(address_of(request)):
            return self.get_response(request)


def address_of(request: HttpRequest) -> str | None:
    """Give the client's address as far as trusted proxies tell it."""
    try:
        return str(get_adapter().get_client_ip(request))
    except PermissionDenied:
        return None


def _look_at(request: HttpRequest) -> HttpResponse | None:
    """End the session when it is time; otherwise note that somebody was here."""
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return None
    if not request.user.is_authenticated:
        return None
    request.zone = request.session.get(ZONE, "")  # type: ignore[attr-defined]  # read by pages
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
