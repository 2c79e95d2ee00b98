"""Bodies of requests about goals, and what is said when one is refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from agents.core.orders import OrderError, StateConflictError
from diagnostics.redaction.redacting import redact
from plans.api.bodies import read_json_body

# Far above what a goal may have: who sends too long a text is told the field.
MAX_BODY_BYTES = 4 * 1024 * 1024


class RefusedError(APIException):
    """422: the fields that are refused, each with a pointer."""

    status_code: int = status.HTTP_422_UNPROCESSABLE_ENTITY

    def __init__(self, code: str, errors: list[dict[str, str]]) -> None:
        """Say it in one sentence and list every field."""
        said = "; ".join(f"{error['path'] or 'body'}: {error['message']}" for error in errors[:5])
        super().__init__(said, code)
        detail: Any = {"detail": said, "code": code, "errors": errors}
        self.detail = detail


class ConflictError(RefusedError):
    """409: what is asked does not fit what is there."""

    status_code = status.HTTP_409_CONFLICT


def read_body(request: Request) -> dict[str, Any]:
    """The JSON object of a request; 400 with line and column for what is no JSON."""
    body, _ = read_json_body(request._request, MAX_BODY_BYTES)
    if not isinstance(body, dict):
        message = "expected a JSON object"
        raise RefusedError("object_type", [{"path": "", "code": "object_type", "message": message}])
    return body


@contextmanager
def refusing() -> Iterator[None]:
    """Turn what the app says about a request into an answer."""
    try:
        yield
    except OrderError as error:
        errors = [{**item.as_dict(), "message": redact(item.message)} for item in error.errors]
        kind = ConflictError if errors[0]["code"] == "taken" else RefusedError
        raise kind(errors[0]["code"], errors) from error
    except StateConflictError as error:
        code = type(error).__name__.removesuffix("Error")
        raise ConflictError(code, [{"path": "", "code": code, "message": str(error)}]) from error
