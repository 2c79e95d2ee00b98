"""Reading a request's body raw and bounded; every fault is a located 4xx."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from django.http import HttpRequest
from pydantic import BaseModel, ValidationError
from rest_framework import status
from rest_framework.exceptions import APIException, UnsupportedMediaType
from rest_framework.parsers import BaseParser

from diagnostics.rest.batches import (
    MAX_COMPRESSED_BYTES,
    MAX_PLAIN_BYTES,
    BatchItem,
    TooLargeError,
    WrongShapeError,
    inflate,
    read_items,
    read_lines,
)
from diagnostics.rest.batches import read_object as parse_object
from failsoft.events import describe_errors
from failsoft.json_values import JSON, clean_json, mend_utf_8
from failsoft.parsing.strict import JsonTextError, parse_json

JSON_TYPE = "application/json"
LINES_TYPES = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl"})
BATCH_TYPES = LINES_TYPES | {JSON_TYPE}
ModelT = TypeVar("ModelT", bound=BaseModel)
UTF_8 = frozenset({"utf-8", "utf8", ""})
GZIP_CODINGS = frozenset({"gzip", "x-gzip"})
# By its first bytes, with which neither a text in UTF-8 nor protobuf begins.
WIDE = "the body is UTF-16: send UTF-8"
SIGNS = {
    b"\x1f\x8b": "the body is gzip: say so once, by Content-Encoding: gzip",
    b"\xff\xfe": WIDE,
    b"\xfe\xff": WIDE,
}


class BodyNotJsonError(APIException):
    """400: why the body is not JSON, and where it stops being it."""

    status_code = status.HTTP_400_BAD_REQUEST

    def __init__(self, error: JsonTextError) -> None:
        super().__init__(error.message, error.code)
        # The framework's type has no numbers, but its renderer supports them.
        problem: Any = {"detail": error.message, "code": error.code}
        problem |= {"line": error.line, "column": error.column}
        self.detail = problem


class LengthRequiredError(APIException):
    """411: a chunked body behind a server that does not assemble it."""

    status_code = status.HTTP_411_LENGTH_REQUIRED
    default_detail = "Send a Content-Length."
    default_code = "length_required"


class WrongKindError(UnsupportedMediaType):
    """415: the content type, and those that the address takes."""

    def __init__(self, kind: str, allowed: Iterable[str]) -> None:
        taken = " or ".join(sorted(allowed))
        super().__init__(kind, f"Content-Type must be {taken}, got {kind[:100] or 'none'}.")


class BodyTooLargeError(APIException):
    """413: too many bytes or events for one request."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = "The body is too large."
    default_code = "too_large"


class InvalidBodyError(APIException):
    """422, always with the code `invalid`: the refused fields, each with a pointer and a code."""

    status_code: int = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_code = "invalid"

    def __init__(self, errors: list[dict[str, str]], code: str = default_code) -> None:
        summary = "; ".join(f"{e['path'] or 'body'}: {e['message']}" for e in errors[:5])
        super().__init__(summary, code)
        problem: Any = {"detail": summary, "code": code, "errors": errors}
        self.detail = problem


@dataclass(frozen=True, slots=True)
class Batch:
    """The items of a body, and the body itself, unpacked."""

    items: Sequence[BatchItem]
    body: bytes
    # Whether bytes that are not UTF-8 were replaced.
    is_mended: bool = False


def read_batch(request: HttpRequest) -> Batch:
    """Return the items of a JSON array, one object or JSON lines, gzip or plain.

    A refused body is attached to the error, for the rejects inbox.
    """
    kind = _read_kind(request, BATCH_TYPES)
    body = b""
    try:
        with refusing_body():
            raw = read_plain(request)
            body = mend_utf_8(raw)
            read = read_lines if kind in LINES_TYPES else read_items
            return Batch(read(body), body, body is not raw)
    except APIException as error:
        error.body = body  # type: ignore[attr-defined] # ours to add
        raise


def read_object(request: HttpRequest) -> dict[str, JSON]:
    """Return the JSON object of a request, gzip or plain."""
    _read_kind(request, {JSON_TYPE})
    with refusing_body():
        return parse_object(read_plain(request))


def read_fields(request: HttpRequest) -> dict[str, Any]:
    """Return the cleaned object of a request; raises 422 with a list of faults."""
    cleaned, json_fault = clean_json(read_object(request))
    if json_fault is not None:
        raise InvalidBodyError([vars(json_fault)])
    fields: dict[str, Any] = cleaned  # type: ignore[assignment] # an object stays one
    return fields


def read_model(request: HttpRequest, model: type[ModelT]) -> ModelT:
    """Return the object of a request as a model; 422 lists every field that is wrong."""
    try:
        return model.model_validate(read_fields(request))
    except ValidationError as error:
        raise InvalidBodyError(describe_errors(error)) from error


class StrictParser(BaseParser):
    """Reads `request.data` with the bounds of other bodies."""

    media_type = JSON_TYPE

    def parse(self, stream: Any, *_: object, **__: object) -> Any:  # noqa: ANN401 - any JSON
        with refusing_body():
            return parse_json(stream.read(MAX_PLAIN_BYTES + 1), MAX_PLAIN_BYTES)


def fault(path: str, message: str) -> dict[str, str]:
    return {"path": path, "code": "invalid", "message": message}


def _read_kind(request: HttpRequest, allowed: Collection[str]) -> str:
    kind, _, parameters = request.headers.get("Content-Type", "").partition(";")
    kind = kind.strip().lower()
    if kind not in allowed:
        raise WrongKindError(kind, allowed)
    if _charset(parameters) not in UTF_8:
        raise UnsupportedMediaType(f"{kind}; charset={_charset(parameters)[:40]}")
    return kind


@contextmanager
def refusing_body() -> Iterator[None]:
    try:
        yield
    except JsonTextError as error:
        raise BodyNotJsonError(error) from error
    except TooLargeError as error:
        raise BodyTooLargeError(str(error)) from error
    except WrongShapeError as error:
        problem = {"path": "", "code": error.code, "message": str(error)}
        raise InvalidBodyError([problem]) from error


def read_plain(request: HttpRequest) -> bytes:
    """Return the body unpacked; raises TooLargeError, JsonTextError, 411 or 415."""
    coding = request.headers.get("Content-Encoding", "").strip().lower()
    if coding not in ("", "identity", *GZIP_CODINGS):
        raise UnsupportedMediaType(coding[:40], "Content-Encoding must be gzip or none.")
    packed = coding in GZIP_CODINGS
    limit = MAX_COMPRESSED_BYTES if packed else MAX_PLAIN_BYTES
    body = _stream_of(request).read(limit + 1)
    if len(body) > limit:
        raise TooLargeError(f"at most {limit} bytes on the wire")
    plain = inflate(body) if packed else body
    if (sign := SIGNS.get(plain[:2])) is not None:
        raise JsonTextError("not_json", sign)
    return plain


def _stream_of(request: HttpRequest) -> Any:  # noqa: ANN401 - anything with `read`
    """Return the body's stream; a chunked body only where the server ends it for us."""
    if "chunked" not in request.headers.get("Transfer-Encoding", "").lower():
        return request
    if not request.META.get("wsgi.input_terminated"):
        raise LengthRequiredError
    return request.META["wsgi.input"]


def _charset(parameters: str) -> str:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"').lower()
    return ""
