"""Faults of ours as answers: a database that is away is 503, never 500."""

from typing import Any

from django.db import InterfaceError, InternalError, OperationalError
from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.response import Response
from rest_framework.views import exception_handler

RETRY_SECONDS = 5
# Away, overloaded, shutting down, out of room, or (internal) a standby that only reads.
DATABASE_FAULTS = (OperationalError, InterfaceError, InternalError)


class UnavailableError(APIException):
    """503: nothing was stored; the same request may be sent again."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = "The database does not answer. Send the request again."
    default_code = "unavailable"
    wait = RETRY_SECONDS


class QuotaReachedError(APIException):
    """429: nothing was stored; send the same request again after `Retry-After`."""

    status_code = status.HTTP_429_TOO_MANY_REQUESTS
    default_detail = "The quota is used up."
    default_code = "quota"

    def __init__(self, message: str, bound: str, wait_seconds: int) -> None:
        """Say which quota, and for how long."""
        super().__init__(message, f"quota_{bound}")
        self.wait = wait_seconds
        answer: Any = {"detail": message, "code": f"quota_{bound}"}
        self.detail = answer


def answer_fault(error: Exception, context: dict[str, Any]) -> Response | None:
    """Give the answer to an exception of a view (REST_FRAMEWORK's handler).

    A database that is away or breaks off answers 503 with Retry-After.
    """
    if isinstance(error, DATABASE_FAULTS):
        error = UnavailableError()
    return exception_handler(error, context)
