"""One JSON document as a request's body, read raw; every fault is a located 4xx."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest
from rest_framework import status
from rest_framework.exceptions import APIException, UnsupportedMediaType

from diagnostics.redaction.redactor import redact
from diagnostics.rest.bodies import BodyNotJsonError, BodyTooLargeError
from failsoft.parsing.strict import JsonTextError, locate_violations, parse_json
from failsoft.plans.violations import Violation

_JSON_TYPE = "application/json"


class ContractViolatedError(APIException):
    """422: the plan breaks the contract; nothing was stored or run."""

    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY

    def __init__(self, errors: Sequence[dict[str, Any]]) -> None:
        """List every violation."""
        super().__init__("The plan breaks the contract.", "contract_violated")
        # Beside texts the errors hold numbers, which are to stay numbers.
        detail: Any = {
            "detail": "The plan breaks the contract.",
            "code": "contract_violated",
            "errors": list(errors),
        }
        self.detail = detail


def read_json_body(request: HttpRequest, limit: int) -> tuple[Any, str]:
    """Return the JSON value of a body of at most `limit` bytes, and its text.

    415 for another media type, 413 for a larger body, 400 with line and column for what
    is not JSON.
    """
    kind = request.headers.get("Content-Type", _JSON_TYPE).partition(";")[0]
    if kind.strip().lower() != _JSON_TYPE or "Content-Encoding" in request.headers:
        raise UnsupportedMediaType(kind[:100] or "none")
    body = request.read(limit + 1)
    if len(body) > limit:
        raise BodyTooLargeError(f"At most {limit} bytes.")
    try:
        value = parse_json(body, limit)
    except JsonTextError as error:
        raise BodyNotJsonError(error.message, error.line, error.column) from error
    return value, body.decode("utf-8-sig")


def describe_violations(text: str, found: list[Violation]) -> list[dict[str, Any]]:
    """Return violations with their places in the text, as they may be shown."""
    return [
        # Names in a message are somebody's words.
        {**fault, "message": redact(fault["message"])}
        for fault in locate_violations(text, found)
    ]
