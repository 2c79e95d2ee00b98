"""Pages of errors of our own: generic, each with an id that is in the log beside the cause.

Programs are answered in their own form: JSON under the API, a line of text at /metrics.
"""

import secrets
import sys
from collections.abc import Mapping
from typing import cast

import structlog
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import is_valid_path

from diagnostics.rest.faults import DATABASE_FAULTS, RETRY_SECONDS, StorageUnavailableError
from diagnostics.web.addressing import AddressMismatch, foreign_origin

log = structlog.get_logger(__name__)

FOR_PROGRAMS = ("/api/v1/", "/v1/", "/mcp")
METRICS = "/metrics"
READINESS = "/readyz"
# What Django says of a file that was not collected, or not by this version.
NOT_COLLECTED = "Missing staticfiles manifest entry"
COLLECT = "run manage.py collectstatic, then restart the web server"


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500 with an id, or 503 while the database is away; the log has the cause."""
    error_id = make_id()
    # Django calls this while it handles the exception.
    fault = sys.exception()
    if isinstance(fault, DATABASE_FAULTS):
        # Its kind alone: while a database is away, each request would log all of it.
        log.error("database_away", error_id=error_id, cause=type(fault).__name__)
        return _unavailable(request, error_id)
    is_unstyled = isinstance(fault, ValueError) and str(fault).startswith(NOT_COLLECTED)
    if is_unstyled:
        log.error("static_files_missing", error_id=error_id, cause=str(fault), remedy=COLLECT)
    else:
        log.error("page_failed", error_id=error_id, exc_info=True)  # noqa: LOG014
    if request.path_info.startswith(FOR_PROGRAMS):
        detail = f"Internal error; it is in the log under the id {error_id}."
        return JsonResponse({"detail": detail, "code": "error"}, status=500)
    context = {"title": "Internal error", "error_id": error_id, "is_unstyled": is_unstyled}
    return _static_page("500.html", 500, context)


def report_hang(request: HttpRequest) -> HttpResponse:
    """Answer 503 for a page whose database does not answer any more."""
    error_id = make_id()
    log.error("database_hangs", error_id=error_id, path=request.path_info)
    return _unavailable(request, error_id)


def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    words = (
        "Your role is read-only here. A project administrator can change it. If you were invited,"
        " open the link of the invitation."
    )
    return _page(request, 403, "Not allowed", words, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404, the same for what is unknown and for what is somebody else's."""
    parts = [part for part in request.path_info.split("/") if part]
    # Often there is something before the right address: a base, a version, the address itself.
    tails = [f"/{'/'.join(parts[n:])}" for n in range(min(len(parts), 8) or 1)]
    # No browser sends a key, wherever the address is wrong.
    if tails[0].startswith(FOR_PROGRAMS) or _has_key(request):
        right = next(filter(is_valid_path, tails), request.path_info)
        is_near = right != request.path_info
        hint = f"did you mean {right}?" if is_near else "/api/docs/ lists what there is."
        detail = f"There is nothing at this address; {hint}"
        return JsonResponse({"detail": detail, "code": "not_found"}, status=404)
    words = "This page does not exist, or belongs to a project you are not a member of."
    if request.method == "POST":
        words = (
            "What you wanted to change is not there any more: it was deleted or revoked meanwhile,"
            " perhaps by a second click. Nothing was changed."
        )
    return _page(request, 404, "Not found", words, exception)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path_info.startswith(FOR_PROGRAMS):
        detail = "The request is malformed."
        return JsonResponse({"detail": detail, "code": "bad_request"}, status=400)
    words = "The request is malformed. Nothing was changed."
    return _page(request, 400, "Bad request", words, exception)


def too_many(request: HttpRequest) -> HttpResponse:
    words = (
        "Wait 15 minutes and try again. An administrator can lift the limit with"
        " `manage.py unlock_sign_in`."
    )
    return _page(request, 429, "Too many attempts", words)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403 to a form without a fresh token, or from a page at another address."""
    scheme, _, rest = request.headers.get("Referer", "").partition("://")
    sent_from = f"{scheme}://{rest.partition('/')[0]}" if rest else ""
    origin = request.headers.get("Origin") or sent_from
    if origin and origin not in own_origins(request):
        return report_mismatch(request, foreign_origin(origin, settings.FAILSOFT_BASE_URL), 403)
    if _has_key(request):
        return not_found(request, PermissionDenied())
    match = request.resolver_match
    is_own = origin and request.user.is_authenticated
    if is_own and match and hasattr(match.func, "asks_membership"):
        # Opened before the latest sign-in, in another tab: kept as if the session had ended.
        request.ended_user_id = request.user.pk  # type: ignore[attr-defined]  # read by the view
        request.user = AnonymousUser()
        return cast(HttpResponse, match.func(request, *match.args, **match.kwargs))
    error_id = make_id()
    log.warning("form_refused", error_id=error_id, reason=reason)
    words = (
        "The form was opened before your last sign-in, or cookies are disabled. Nothing was"
        " changed. Reload the page and submit again."
    )
    context = {"title": "Form expired", "words": words, "error_id": error_id}
    return render(request, "notice.html", context, status=403)


def _has_key(request: HttpRequest) -> bool:
    return request.headers.get("Authorization", "").startswith("Bearer fs_")


def own_origins(request: HttpRequest) -> set[str]:
    return {f"{request.scheme}://{request.get_host()}", *settings.CSRF_TRUSTED_ORIGINS}


def report_mismatch(
    request: HttpRequest, mismatch: AddressMismatch, status: int = 400
) -> HttpResponse:
    """Answer which header and which setting do not fit; the log has the same."""
    error_id = make_id()
    log.warning(
        "request_does_not_fit_settings",
        error_id=error_id,
        path=request.path_info,
        code=mismatch.code,
        setting=mismatch.setting,
        detail=str(mismatch),
    )
    if request.path_info.startswith(FOR_PROGRAMS):
        return JsonResponse({"detail": str(mismatch), "code": mismatch.code}, status=status)
    if request.path_info in (METRICS, READINESS):
        return HttpResponse(f"{mismatch}\n", status=status, content_type="text/plain")
    title = "Address and settings do not match"
    context = {"title": title, "mismatch": mismatch, "error_id": error_id}
    return _static_page("400_address.html", status, context)


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
        context = {"title": "Database unavailable", "error_id": error_id, "asked": address}
        answer = _static_page("503.html", 503, context)
    answer["Retry-After"] = str(RETRY_SECONDS)
    answer["Cache-Control"] = "no-store"
    return answer


def _static_page(template: str, status: int, context: Mapping[str, object]) -> HttpResponse:
    """Answer without the request: neither session nor member may be readable now."""
    return HttpResponse(render_to_string(template, context), status=status)


def _page(
    request: HttpRequest, status: int, title: str, words: str, cause: Exception | None = None
) -> HttpResponse:
    error_id = make_id()
    kind = type(cause).__name__ if cause is not None else ""
    log.info("page_refused", error_id=error_id, status=status, cause=kind)
    context = {"title": title, "words": words, "error_id": error_id}
    return render(request, "notice.html", context, status=status)
