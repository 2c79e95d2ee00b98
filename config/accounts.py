"""Sign-in and sessions; accounts require an invitation or an administrator."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from datetime import UTC, timedelta, tzinfo
from functools import partial
from typing import Any

import structlog
from allauth.account import signals as account_signals
from allauth.account.adapter import DefaultAccountAdapter, get_adapter
from allauth.account.forms import LoginForm
from allauth.account.internal.flows.login import (
    AUTHENTICATION_METHODS_SESSION_KEY,
    get_authentication_records,
)
from allauth.account.internal.userkit import filter_users_by_email, get_user_by_username
from allauth.core.internal.ratelimit import Rate, RateLimitUsage, clear, consume, get_cache_key
from allauth.mfa import signals as mfa_signals
from allauth.socialaccount import signals as social_signals
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.models import AbstractBaseUser, User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.core.mail import EmailMessage
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django_htmx.http import HttpResponseClientRefresh

from diagnostics.accounts.audit_log import from_address, note
from diagnostics.accounts.invitations import invitation_in
from diagnostics.accounts.profiles import ZONE, profile_of, remember
from diagnostics.outbound.mail import own_headers
from diagnostics.selection.fields import read_zone
from diagnostics.web.pages import CHOSEN, CHOSEN_LAST, READING

Respond = Callable[[HttpRequest], HttpResponse]
STAMPS = "stamps"
POLL = "X-Poll"
# The shortest interval between two writes of a session.
PRECISION_SECONDS = 60
A_YEAR = timedelta(days=365)
ENDED = "You were signed out: the session was idle or has expired."


def stamp(session: Any, now: float) -> None:  # noqa: ANN401 - any session store
    session[STAMPS] = [now, now]


def is_over(started_at: float, last_seen_at: float, now: float) -> bool:
    max_seconds: int = settings.FAILSOFT_SESSION_SECONDS
    max_idle_seconds: int = settings.FAILSOFT_IDLE_SECONDS
    return now - started_at >= max_seconds or now - last_seen_at >= max_idle_seconds


class SessionLimits:
    """Ends expired sessions, records activity and client addresses, sets the time zone.

    No cache keeps an answer that does not say whether it may be kept.
    """

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = _check_session(request)
        if response is not None:
            return response
        with from_address(address_of(request)), timezone.override(zone_for(request)):
            response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        # A project that was chosen just now is remembered beyond the session.
        chosen = request.session.get(CHOSEN) if request.session.modified else None
        if chosen and chosen != request.COOKIES.get(CHOSEN_LAST):
            options: dict[str, Any] = {"secure": settings.SESSION_COOKIE_SECURE, "samesite": "Lax"}
            response.set_cookie(CHOSEN_LAST, chosen, A_YEAR, httponly=True, **options)
        return response


def zone_for(request: HttpRequest) -> tzinfo:
    """Return the time zone of a page: the one in its URL, else that of the user."""
    for name in (request.GET.get("tz"), getattr(request, "zone", "")):
        with suppress(ValueError):
            if name:
                return read_zone(name)
    return UTC


def address_of(request: HttpRequest) -> str | None:
    """Return the address of the client, as reported by trusted proxies."""
    try:
        return str(get_adapter().get_client_ip(request))
    except PermissionDenied:
        return None


def _check_session(request: HttpRequest) -> HttpResponse | None:
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return None
    if not request.user.is_authenticated:
        return None
    request.zone = request.session.get(ZONE, "")  # type: ignore[attr-defined]  # read by `zone_for`
    now = time.time()
    # Sessions that were not created by sign-in (a command, a test) have no stamps yet.
    login = request.user.last_login
    created_at = login.timestamp() if login else now
    started_at, last_seen_at = request.session.get(STAMPS, (created_at, created_at))
    if is_over(started_at, last_seen_at, now):
        UserSession.objects.filter(session_key=request.session.session_key).delete()
        request.ended_user_id = request.user.pk  # type: ignore[attr-defined]  # read by `member_view`
        logout(request)
        messages.info(request, ENDED)
        if request.method not in READING:
            return None  # a form goes on to its view, which keeps the draft
        if request.headers.get("HX-Request"):
            return HttpResponseClientRefresh()
        return redirect_to_login(request.get_full_path())
    if now - last_seen_at >= PRECISION_SECONDS and POLL not in request.headers:
        request.session[STAMPS] = [started_at, now]
        user_sessions = UserSession.objects.filter(session_key=request.session.session_key)
        user_sessions.update(last_seen_at=timezone.now())
    return None


# What people change about how they sign in. Allauth says whose by `user`, or by what is theirs.
NOTED = {
    account_signals.password_changed: "password.changed",
    account_signals.password_set: "password.set",
    account_signals.password_reset: "password.reset",
    account_signals.email_confirmed: "email.confirmed",
    mfa_signals.authenticator_added: "second_factor.added",
    mfa_signals.authenticator_removed: "second_factor.removed",
    mfa_signals.authenticator_reset: "second_factor.renewed",
    social_signals.social_account_added: "single_sign_on.connected",
    social_signals.social_account_removed: "single_sign_on.disconnected",
}
OWNED = ("email_address", "sociallogin", "socialaccount")


def _note(action: str, request: HttpRequest, **given: Any) -> None:
    user = given.get("user") or next(given[name].user for name in OWNED if name in given)
    by = request.user if request.user.is_authenticated else user
    factor = given.get("authenticator")
    note(None, by, action, user.get_username(), {"type": factor.type} if factor else None)


for _signal, _action in NOTED.items():
    _signal.connect(partial(_note, _action), weak=False)


logger = structlog.get_logger(__name__)
# Allauth's name for the limits of failed sign-ins.
BAD_SIGN_INS = {"app": "allauth.account", "action": "login_failed"}

# Apart from requests: how long a mail takes would say that an address has an account.
MAILS = ThreadPoolExecutor(1, "account-mail")


class SignInForm(LoginForm):  # type: ignore[misc]  # untyped base
    """Allauth's form; its first field takes a username or an email address."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = "Username or email"
        self.fields["login"].widget.attrs.pop("placeholder", None)

    def user_credentials(self) -> dict[str, str]:
        """Return the login once: as name and address, a known address took two checks."""
        return {"username": self.cleaned_data["login"], "password": self.cleaned_data["password"]}


class ClosedAccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # untyped base
    """Accounts are made by an administrator, or by accepting an invitation."""

    def render_mail(self, *given: Any, **options: Any) -> EmailMessage:
        mail: EmailMessage = super().render_mail(*given, **options)
        mail.extra_headers = {**own_headers(), **mail.extra_headers}
        return mail

    def send_mail(self, *given: Any, **options: Any) -> None:
        """Send a mail after the answer, which neither its time nor its failure changes."""
        MAILS.submit(copy_context().run, self._send_now, *given, **options)

    def _send_now(self, *given: Any, **options: Any) -> None:
        try:
            super().send_mail(*given, **options)
        except Exception as error:  # noqa: BLE001 - nobody waits for it
            logger.error("account_mail_not_sent", error=type(error).__name__)  # noqa: TRY400

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return invitation_in(request.session) is not None

    def is_email_verified(self, request: HttpRequest, email: str) -> bool:
        """Whether the invitation of the session was sent to the address."""
        invitation = invitation_in(request.session)
        return invitation is not None and invitation.email.lower() == email.lower()

    def login(self, request: HttpRequest, user: AbstractBaseUser) -> None:
        """Sign in and store the start time of the session."""
        super().login(request, user)
        stamp(request.session, time.time())
        # Mark a new sign-in as reauthenticated, so that it is not confirmed again at once.
        records = get_authentication_records(request, request.user)
        for record in records:
            if record["method"] in {"password", "mfa"}:
                record["reauthenticated"] = True
        request.session[AUTHENTICATION_METHODS_SESSION_KEY] = records
        if isinstance(user, User):
            remember(request.session, profile_of(user))
        note(None, user, "sign_in.succeeded", user.get_username())

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """Log the failure without the input: some users type their password as their name."""
        logger.info("sign_in_failed", address=self.get_client_ip(request))

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count a try for each person whose password is checked, whatever was typed for them."""
        self._login_failed_rl_usage = RateLimitUsage([])
        for key in attempts_keys(credentials):
            counted = consume(request, **BAD_SIGN_INS, key=key)
            if not counted:
                raise self.validation_error("too_many_login_attempts")
            self._login_failed_rl_usage.usage += counted.usage

    def _delete_login_attempts_cached_email(self, request: HttpRequest, **credentials: Any) -> None:
        for key in attempts_keys(credentials):
            clear(request, **BAD_SIGN_INS, key=key)


def attempts_keys(credentials: Mapping[str, str]) -> list[str]:
    """Return the keys that count failed sign-ins: of all people that these credentials may mean.

    The same people as allauth asks for their passwords. A name that nobody has is counted by
    itself, without case and blanks, so that it is locked like any other.
    """
    logins = [
        login for name in ("username", "email") if (login := credentials.get(name, "").strip())
    ]
    people = {user.pk for login in logins for user in filter_users_by_email(login, for_login=True)}
    people |= {user.pk for login in logins if (user := get_user_by_username(login))}
    unknown = {f"sign-in:{login.casefold()}" for login in logins[:1]}
    return sorted(map(attempts_key, people) if people else unknown)


def attempts_key(person: int) -> str:
    return f"sign-in:#{person}"


def attempts_cache_key(rate: Rate, key: str) -> str:
    """Return the cache key of allauth for such a count."""
    # A rate by key does not depend on the request.
    empty_request = HttpRequest()
    return str(get_cache_key(empty_request, **BAD_SIGN_INS, rate=rate, key=key))
