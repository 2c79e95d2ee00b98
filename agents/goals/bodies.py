"""Bodies of requests about goals, and the responses that refuse them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rest_framework import status
from rest_framework.request import Request

from agents.goals.requests import NO_OBJECT, RequestRefusedError, StateConflictError
from diagnostics.redaction.redactor import redact
from diagnostics.rest.bodies import InvalidBodyError
from diagnostics.rest.resources import Resource
from failsoft.plans.violations import Violation
from plans.bodies import read_json_body

# Far above what a goal may have, so that a text that is too long is refused by field.
MAX_BODY_BYTES = 4 * 1024 * 1024


class ConflictError(InvalidBodyError):
    """409: the request conflicts with the stored state."""

    status_code = status.HTTP_409_CONFLICT


def read_body(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request; 400 with line and column if it is not JSON."""
    body, _ = read_json_body(request._request, MAX_BODY_BYTES)
    if not isinstance(body, dict):
        raise InvalidBodyError([asdict(NO_OBJECT)])
    return body


@contextmanager
def refusing() -> Iterator[None]:
    """Turn the app's exceptions about a request into responses."""
    try:
        yield
    except RequestRefusedError as error:
        errors = [{**item.as_dict(), "message": redact(item.message)} for item in error.errors]
        code = errors[0]["code"]
        refusal = ConflictError(errors, code) if code == "taken" else InvalidBodyError(errors)
        raise refusal from error
    except StateConflictError as error:
        code = type(error).__name__.removesuffix("Error")
        raise ConflictError([{"path": "", "code": code, "message": str(error)}], code) from error


class RefusedGoal(Resource):
    """Why a request was refused, field by field."""

    detail: str
    code: str
    errors: list[Violation]
