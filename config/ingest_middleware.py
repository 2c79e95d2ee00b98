"""Middleware that passes telemetry directly to its view, without sessions and forms."""

from collections.abc import Callable
from functools import cache

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import resolve

Respond = Callable[[HttpRequest], HttpResponse]
View = Callable[[HttpRequest], HttpResponseBase]

# Endpoints with many requests, from programs with an API key.
PATHS = frozenset({"/api/v1/events", "/api/v1/outcomes", "/v1/traces", "/v1/logs"})
HEADERS = {
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class IngestMiddleware:
    """Handles POSTs to PATHS before other middleware, but after SecurityMiddleware."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method != "POST" or request.path_info not in PATHS:
            return self.get_response(request)
        # Refuse unknown hosts, as other requests do.
        request.get_host()
        response = _view_of(request.path_info)(request)
        if hasattr(response, "render"):
            response = response.render()
        for name, value in HEADERS.items():
            response.headers[name] = value
        response.headers["Content-Length"] = str(len(response.content))  # type: ignore[attr-defined] # none of these streams
        return response


@cache
def _view_of(path: str) -> View:
    view: View = resolve(path).func
    return view
