"""Faults of ours as answers: a database that is away is 503, never 500."""

from typing import Any

from django.db import InterfaceError, OperationalError
from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.response import Response
from rest_framework.views import exception_handler

RETRY_SECONDS = 5


class UnavailableError(APIException):
    """503: nothing was stored; the same request may be sent again."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = "The database does not answer. Send the request again."
    default_code = "unavailable"
    wait = RETRY_SECONDS


def answer_fault(error: Exception, context: dict[str, Any]) -> Response | None:
    """Give the answer to an exception of a view (REST_FRAMEWORK's handler).

    A database that is away or breaks off answers 503 with Retry-After.
    """
    if isinstance(error, OperationalError | InterfaceError):
        error = UnavailableError()
    return exception_handler(error, context)
