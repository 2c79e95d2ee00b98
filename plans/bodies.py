"""Request bodies of one JSON document, read raw; every error is a 4xx with a location."""

from typing import Any

from django.http import HttpRequest

from diagnostics.redaction.redactor import redact
from diagnostics.rest.bodies import JSON_TYPE, BodyTooLargeError, WrongKindError, refusing_body
from diagnostics.rest.resources import Resource
from failsoft.parsing.strict import locate_faults, parse_json
from failsoft.plans.violations import Violation


class LocatedFault(Resource):
    """A violation of the contract, with the line and column of its value, from 1."""

    path: str
    code: str
    message: str
    line: int
    column: int


def read_json_body(request: HttpRequest, limit: int) -> tuple[Any, str]:
    """Return the JSON value of a body of at most `limit` bytes, and its text.

    Raises 415 for another media type, 413 for a larger body, and 400 with line and column
    for invalid JSON.
    """
    kind = request.headers.get("Content-Type", JSON_TYPE).partition(";")[0]
    if kind.strip().lower() != JSON_TYPE or "Content-Encoding" in request.headers:
        raise WrongKindError(kind, [JSON_TYPE])
    body = request.read(limit + 1)
    if len(body) > limit:
        raise BodyTooLargeError(f"At most {limit} bytes.")
    with refusing_body():
        return parse_json(body, limit), body.decode("utf-8-sig")


def describe_violations(text: str, violations: list[Violation]) -> list[dict[str, Any]]:
    """Return violations with their locations in the text, redacted for display."""
    return [
        # Messages quote names from the document.
        {**violation, "message": redact(violation["message"])}
        for violation in locate_faults(text, [violation.as_dict() for violation in violations])
    ]
