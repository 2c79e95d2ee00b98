"""Bodies of requests about goals, and what is said when one is refused."""

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

# Far above what a goal may have: who sends too long a text is told the field.
MAX_BODY_BYTES = 4 * 1024 * 1024


class ConflictError(InvalidBodyError):
    """409: what is asked does not fit what is there."""

    status_code = status.HTTP_409_CONFLICT


def read_body(request: Request) -> dict[str, Any]:
    """The JSON object of a request; 400 with line and column for what is no JSON."""
    body, _ = read_json_body(request._request, MAX_BODY_BYTES)
    if not isinstance(body, dict):
        raise InvalidBodyError([asdict(NO_OBJECT)], NO_OBJECT.code)
    return body


@contextmanager
def refusing() -> Iterator[None]:
    """Turn what the app says about a request into an answer."""
    try:
        yield
    except RequestRefusedError as error:
        errors = [{**item.as_dict(), "message": redact(item.message)} for item in error.errors]
        kind = ConflictError if errors[0]["code"] == "taken" else InvalidBodyError
        raise kind(errors, errors[0]["code"]) from error
    except StateConflictError as error:
        code = type(error).__name__.removesuffix("Error")
        raise ConflictError([{"path": "", "code": code, "message": str(error)}], code) from error


class RefusedGoal(Resource):
    """Why a request was refused, field by field."""

    detail: str
    code: str
    errors: list[Violation]
