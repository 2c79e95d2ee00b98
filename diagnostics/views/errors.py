"""Pages of errors of our own: generic, each with an id that is in the log beside the cause."""

import secrets

import structlog
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

log = structlog.get_logger(__name__)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500 with an id; what went wrong stands in the log only (S27)."""
    error_id = make_id()
    # Django calls this while it handles the exception: the log takes it from there.
    log.error("page_failed", error_id=error_id, exc_info=True)  # noqa: LOG014
    return render(request, "500.html", {"error_id": error_id}, status=500)


def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403."""
    return _page(request, "403.html", 403, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404, the same for what is unknown and for what is somebody else's."""
    return _page(request, "404.html", 404, exception)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400."""
    return _page(request, "400.html", 400, exception)


def too_many(request: HttpRequest) -> HttpResponse:
    """Answer 429: somebody tries too often."""
    return _page(request, "429.html", 429, None)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403 to a form without a fresh token."""
    error_id = make_id()
    log.warning("form_refused", error_id=error_id, reason=reason)
    return render(request, "403_csrf.html", {"error_id": error_id}, status=403)


def make_id() -> str:
    """Make an id that finds the entry in the log."""
    return secrets.token_hex(6)


def _page(
    request: HttpRequest, template: str, status: int, cause: Exception | None
) -> HttpResponse:
    error_id = make_id()
    kind = type(cause).__name__ if cause is not None else ""
    log.info("page_refused", error_id=error_id, status=status, cause=kind)
    return render(request, template, {"error_id": error_id}, status=status)
