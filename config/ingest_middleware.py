"""Telemetry goes straight to its view: sessions, forms and pages have no part in it."""

from collections.abc import Callable
from functools import cache

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import resolve

Respond = Callable[[HttpRequest], HttpResponse]
View = Callable[[HttpRequest], HttpResponseBase]

# What is posted here in masses, by programs with a key.
PATHS = frozenset({"/api/v1/events", "/api/v1/outcomes", "/v1/traces", "/v1/logs"})
HEADERS = {
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class IngestMiddleware:
    """Answers posts to PATHS before other middleware, but behind SecurityMiddleware."""

    def __init__(self, get_response: Respond) -> None:
        """Remember the next part."""
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer, or pass on whatever is no telemetry."""
        if request.method != "POST" or request.path_info not in PATHS:
            return self.get_response(request)
        # Refused as everywhere when it is not our name.
        request.get_host()
        answer = _view_of(request.path_info)(request)
        if hasattr(answer, "render"):
            answer = answer.render()
        for name, value in HEADERS.items():
            answer.headers[name] = value
        answer.headers["Content-Length"] = str(len(answer.content))  # type: ignore[attr-defined] # none of these streams
        return answer


@cache
def _view_of(path: str) -> View:
    view: View = resolve(path).func
    return view
