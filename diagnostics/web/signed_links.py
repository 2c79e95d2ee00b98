"""Links that work without signing in: signed, for one thing, until a time."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Concatenate, ParamSpec

from django.core.signing import BadSignature, Signer
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

P = ParamSpec("P")
LinkView = Callable[Concatenate[HttpRequest, P], HttpResponse]


class BadLinkError(Exception):
    """this link was not made here, or its time is over"""


def sign_link(purpose: str, number: int, until: datetime, key: str = "") -> str:
    """Return the token of a link: for a row, until a time; a key of the row may revoke it."""
    text = f"{number}-{int(until.timestamp())}"
    return _signer(purpose).sign(f"{text}-{key}" if key else text)


def read_link(purpose: str, token: str, now: datetime) -> tuple[int, str]:
    """Return the number and the key that a link was signed for, or BadLinkError."""
    try:
        number, seconds, *key = _signer(purpose).unsign(token).split("-")
        until = datetime.fromtimestamp(int(seconds), UTC)
    except (BadSignature, ValueError, OverflowError):
        raise BadLinkError(BadLinkError.__doc__) from None
    if now > until:
        raise BadLinkError(BadLinkError.__doc__)
    return int(number), "".join(key)


def link_page(view: LinkView[P]) -> LinkView[P]:
    """Let in whoever has the link: it is what a session's cookie proves elsewhere."""

    @csrf_exempt
    @never_cache
    @require_http_methods(["GET", "HEAD", "POST"])
    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        answer = view(request, *args, **kwargs)
        # The address is the credential, so it must not leak as a referrer.
        answer["Referrer-Policy"] = "no-referrer"
        return answer

    return guarded


def _signer(purpose: str) -> Signer:
    return Signer(salt=f"failsoft.{purpose}", sep=".")
