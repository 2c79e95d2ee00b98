"""`http_get`: fetch a public URL, within limits (S17)."""

import re
import time
from typing import Annotated

import httpx
from django.conf import settings
from pydantic import BaseModel, Field, JsonValue

from diagnostics.outbound.pinned_http import (
    MAX_BYTES,
    MAX_SECONDS,
    Answer,
    PinnedHttpError,
    ask,
)
from plans.core.json_text import JsonTextError, parse_json
from plans.tools.registry import tool

MAX_REDIRECTS = 5
_REDIRECTS = {301, 302, 303, 307, 308}


# Others of Python's take a time that grows with the square of the length (punycode).
_CHARSET = re.compile(
    r"utf-?(8|16|32)|us-ascii|iso|latin|windows|cp|koi8|gb|big5|shift|euc",
    re.IGNORECASE,
)


class HttpGetError(Exception):
    """The URL could not be fetched; the message says why."""


class HttpGetArgs(BaseModel):
    """What to fetch."""

    url: Annotated[str, Field(max_length=2000, description="A public http(s) URL.")]


@tool(
    "http_get",
    HttpGetArgs,
    description="Fetch a public URL and return its text, and its JSON when it is JSON.",
)
def http_get(args: HttpGetArgs) -> dict[str, JsonValue]:
    """Return status, content type, text and JSON of the URL, redirects followed.

    At most 5 s and 1 MiB for all; raises for a status of 400 and above.
    """
    deadline = time.monotonic() + MAX_SECONDS
    url = args.url
    for _ in range(MAX_REDIRECTS + 1):
        answer = _ask(url, deadline)
        response, body = answer.response, answer.body
        location = response.headers.get("location")
        if response.status_code not in _REDIRECTS or not location:
            return _describe(url, response, body)
        url = str(httpx.URL(url).join(location))
    raise HttpGetError(f"more than {MAX_REDIRECTS} redirects")


def _ask(url: str, deadline: float) -> Answer:
    try:
        return ask(url, deadline, allow_private=settings.FAILSOFT_HTTP_ALLOW_PRIVATE)
    except PinnedHttpError as error:
        raise HttpGetError(str(error)) from None


def _describe(url: str, response: httpx.Response, body: bytes) -> dict[str, JsonValue]:
    if response.status_code >= httpx.codes.BAD_REQUEST:
        raise HttpGetError(f"the server answered {response.status_code}")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise HttpGetError("the answer is compressed, which was not asked for")
    content_type = response.headers.get("content-type", "")
    return {
        "url": url,
        "status": response.status_code,
        "content_type": content_type,
        "text": _decode(body, response.charset_encoding),
        "json": _read_json(body) if "json" in content_type else None,
    }


def _decode(body: bytes, charset: str | None) -> str:
    known = charset if charset and _CHARSET.match(charset) else "utf-8"
    try:
        return body.decode(known, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def _read_json(body: bytes) -> JsonValue:
    try:
        value: JsonValue = parse_json(body, MAX_BYTES)
    except JsonTextError:
        return None
    return value
