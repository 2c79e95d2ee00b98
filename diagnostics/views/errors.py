"""The page of an error of our own: generic, with an id that is in the log beside the cause."""

import secrets

import structlog
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

log = structlog.get_logger(__name__)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500 with an id; what went wrong stands in the log only (S27)."""
    error_id = secrets.token_hex(6)
    # Django calls this while it handles the exception: the log takes it from there.
    log.error("page_failed", error_id=error_id, exc_info=True)  # noqa: LOG014
    return render(request, "500.html", {"error_id": error_id}, status=500)
