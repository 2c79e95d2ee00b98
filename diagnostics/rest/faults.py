"""Exceptions as responses: JSON with `detail` and `code`."""

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, InternalError, OperationalError
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.exceptions import APIException, ErrorDetail, ValidationError
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import exception_handler

RETRY_SECONDS = 5
# Down, overloaded, shutting down, out of space, or (internal) a read-only standby.
DATABASE_FAULTS = (OperationalError, InterfaceError, InternalError)


class StorageUnavailableError(APIException):
    """503: nothing was stored; the same request may be sent again."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = "The database does not answer. Send the request again."
    default_code = "unavailable"
    wait = RETRY_SECONDS


def answer_fault(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return the answer to an exception of a view (REST_FRAMEWORK's handler).

    A database that is away or breaks off answers 503 with Retry-After.
    """
    error = _as_api_error(error)
    answer = exception_handler(error, context)
    if answer is not None and isinstance(error, APIException):
        detail: Any = error.detail
        if isinstance(error, ValidationError):
            answer.data = _describe_fields(detail)
        elif not isinstance(detail, dict):
            answer.data = {"detail": detail, "code": detail.code}
        else:
            answer.data = detail
    return answer


def _describe_fields(faults: Any) -> dict[str, Any]:  # noqa: ANN401 - nested as it likes
    """Return each field with its messages, `detail` that names them all, and `code`."""
    texts = list(_flatten(faults))
    codes = {text.code for _, text in texts}
    detail = "; ".join(f"{name}: {text}" if name else text for name, text in texts)
    code = codes.pop() if len(codes) == 1 else ValidationError.default_code
    own = faults if isinstance(faults, dict) else {}
    return {**own, "detail": detail, "code": code}


def _flatten(
    faults: Any,  # noqa: ANN401 - nested as it likes
    name: str = "",
) -> Iterator[tuple[str, ErrorDetail]]:
    """Yield each message with the path of its field, the outermost first."""
    if isinstance(faults, dict):
        for field, value in faults.items():
            is_whole = field == api_settings.NON_FIELD_ERRORS_KEY
            path = name if is_whole else f"{name}.{field}".lstrip(".")
            yield from _flatten(value, path)
    elif isinstance(faults, list):
        for value in faults:
            yield from _flatten(value, name)
    else:
        yield name, faults


def _as_api_error(error: Exception) -> Exception:
    """Return our own exception for a framework's, whose messages are not for clients."""
    if isinstance(error, DATABASE_FAULTS):
        return StorageUnavailableError()
    if isinstance(error, Http404):
        return exceptions.NotFound()
    if isinstance(error, PermissionDenied):
        return exceptions.PermissionDenied()
    return error
