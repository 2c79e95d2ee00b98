"""Pages of errors of our own: generic, each with an id that is in the log beside the cause.

Programs are answered in their own form: JSON under the API, a line of text at /metrics.
"""

import secrets
import sys

import structlog
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from diagnostics.rest.faults import DATABASE_FAULTS, RETRY_SECONDS, StorageUnavailableError

log = structlog.get_logger(__name__)

FOR_PROGRAMS = ("/api/v1/", "/v1/")
METRICS = "/metrics"


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500 with an id, or 503 while the database is away; the log has the cause."""
    error_id = make_id()
    # Django calls this while it handles the exception.
    fault = sys.exception()
    if isinstance(fault, DATABASE_FAULTS):
        # Its kind alone: while a database is away, each request would log all of it.
        log.error("database_away", error_id=error_id, cause=type(fault).__name__)
        return _unavailable(request, error_id)
    log.error("page_failed", error_id=error_id, exc_info=True)  # noqa: LOG014
    if request.path_info.startswith(FOR_PROGRAMS):
        detail = f"Internal error; it is in the log under the id {error_id}."
        return JsonResponse({"detail": detail, "code": "error"}, status=500)
    return _bare("500.html", 500, {"error_id": error_id})


def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403."""
    return _page(request, "403.html", 403, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404, the same for what is unknown and for what is somebody else's."""
    if request.path_info.startswith(FOR_PROGRAMS):
        detail = "There is nothing at this address; /api/docs/ lists what there is."
        return JsonResponse({"detail": detail, "code": "not_found"}, status=404)
    return _page(request, "404.html", 404, exception)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400."""
    if request.path_info.startswith(FOR_PROGRAMS):
        detail = "The request is malformed."
        return JsonResponse({"detail": detail, "code": "bad_request"}, status=400)
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


def _unavailable(request: HttpRequest, error_id: str) -> HttpResponse:
    """Say that the database is away, and when to come back; reads nothing from it."""
    if request.path_info.startswith(FOR_PROGRAMS):
        body = {
            "detail": StorageUnavailableError.default_detail,
            "code": StorageUnavailableError.default_code,
        }
        answer: HttpResponse = JsonResponse(body, status=503)
    elif request.path_info == METRICS:
        text = "the database does not answer\n"
        answer = HttpResponse(text, status=503, content_type="text/plain")
    else:
        address = request.get_full_path() if request.method == "GET" else ""
        context = {"error_id": error_id, "asked": address}
        answer = _bare("503.html", 503, context)
    answer["Retry-After"] = str(RETRY_SECONDS)
    answer["Cache-Control"] = "no-store"
    return answer


def _bare(template: str, status: int, context: dict[str, str]) -> HttpResponse:
    """Answer without the request: neither session nor member may be readable now."""
    return HttpResponse(render_to_string(template, context), status=status)


def _page(
    request: HttpRequest, template: str, status: int, cause: Exception | None
) -> HttpResponse:
    error_id = make_id()
    kind = type(cause).__name__ if cause is not None else ""
    log.info("page_refused", error_id=error_id, status=status, cause=kind)
    return render(request, template, {"error_id": error_id}, status=status)
