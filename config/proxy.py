"""Middleware that says which setting to change if a proxy and the settings do not fit."""

from collections.abc import Callable
from functools import cache

import structlog
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from diagnostics.ingest.api.otlp import refuse
from diagnostics.web.addressing import (
    FORWARDED_FOR,
    FORWARDED_PROTO,
    AddressMismatch,
    not_secure,
    too_few_proxies,
    unknown_host,
)
from diagnostics.web.errors import FOR_PROGRAMS, report_mismatch

log = structlog.get_logger(__name__)
OTLP = "/v1/"
# Asked from inside, past the proxy.
FROM_INSIDE = frozenset({"/readyz", "/metrics"})
BAD_REQUEST = 400


class ProxyMiddleware:
    """Refuses requests that do not fit the addresses in the settings, with the reason."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        mismatch = find_mismatch(request)
        if mismatch is None:
            return self.get_response(request)
        response = report_mismatch(request, mismatch)
        if request.path_info.startswith(OTLP):
            return refuse(request, BAD_REQUEST, str(mismatch))
        return response


def find_mismatch(request: HttpRequest) -> AddressMismatch | None:
    """Return the first header that does not fit a setting, or None."""
    try:
        request.get_host()
    except DisallowedHost:
        return unknown_host(request.headers.get("Host"), settings.FAILSOFT_BASE_URL)
    if request.path_info in FROM_INSIDE:
        return None
    return _find_proto(request) or _find_forwarded_for(request)


def _find_proto(request: HttpRequest) -> AddressMismatch | None:
    """Find what a redirect to TLS would not mend: it would repeat itself, or lose a post."""
    if not settings.SECURE_SSL_REDIRECT or request.is_secure():
        return None
    proto = request.headers.get(FORWARDED_PROTO)
    is_redirected = proto == "http" and not request.path_info.startswith(FOR_PROGRAMS)
    return None if is_redirected else not_secure(proto, settings.FAILSOFT_BASE_URL)


def _find_forwarded_for(request: HttpRequest) -> AddressMismatch | None:
    expected: int = settings.FAILSOFT_TRUSTED_PROXIES
    forwarded = request.headers.get(FORWARDED_FOR)
    if (forwarded is None) != (expected == 0):
        _warn_once(expected)
    if forwarded is not None and forwarded.count(",") + 1 < expected:
        return too_few_proxies(forwarded, expected)
    return None


@cache
def _warn_once(expected: int) -> None:
    """Log once per process that limits by address count for the proxy, not for its clients."""
    seen = "is missing" if expected else "is ignored"
    log.warning(
        "client_addresses_unknown",
        setting="FAILSOFT_TRUSTED_PROXIES",
        expected=expected,
        detail=f"{FORWARDED_FOR} {seen}: FAILSOFT_TRUSTED_PROXIES is {expected}. Limits by address"
        " then count for all clients of a proxy together.",
    )
