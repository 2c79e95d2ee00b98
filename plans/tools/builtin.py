"""Tools that every installation has: useful and harmless. Importing registers them."""

import json
import re
import time
from collections.abc import Iterator
from typing import Annotated, NoReturn

import httpx
from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from diagnostics.outbound.pinned_http import MAX_BYTES, MAX_SECONDS, PinnedHttpError, send_request
from failsoft.json_values import pointer_parts
from failsoft.parsing.strict import JsonTextError, parse_json
from plans.tools.registry import tool


class EchoArgs(BaseModel):
    """Anything, or nothing."""

    model_config = ConfigDict(extra="allow")


@tool("echo", EchoArgs, description="Return the arguments unchanged.")
def echo(args: EchoArgs) -> dict[str, JsonValue]:
    return dict(args.model_extra or {})


class FailedOnPurposeError(Exception):
    """The tool was asked to fail."""


class FailArgs(BaseModel):
    """The error message; anything else is ignored."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    message: str = "failed on purpose"


@tool("fail", FailArgs, description="Always fail.", offered=False)
def fail(args: FailArgs) -> NoReturn:
    raise FailedOnPurposeError(args.message)


MAX_REDIRECTS = 5
_REDIRECTS = {301, 302, 303, 307, 308}
# Other codecs of Python, such as punycode, take quadratic time.
_CHARSET = re.compile(
    r"utf-?(8|16|32)|us-ascii|iso|latin|windows|cp|koi8|gb|big5|shift|euc", re.IGNORECASE
)


class HttpGetError(Exception):
    """The URL could not be fetched; the message says why."""


class HttpGetArgs(BaseModel):
    """The URL to fetch."""

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
        private = settings.FAILSOFT_HTTP_ALLOW_PRIVATE
        try:
            answer = send_request(url, deadline, allow_private=private)
        except PinnedHttpError as error:
            raise HttpGetError(str(error)) from None
        response, body = answer.response, answer.body
        location = response.headers.get("location")
        if response.status_code not in _REDIRECTS or not location:
            return _describe(url, response, body)
        url = str(httpx.URL(url).join(location))
    raise HttpGetError(f"more than {MAX_REDIRECTS} redirects")


def _describe(url: str, response: httpx.Response, body: bytes) -> dict[str, JsonValue]:
    if response.status_code >= httpx.codes.BAD_REQUEST:
        raise HttpGetError(f"the server answered {response.status_code}")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise HttpGetError("the response is compressed, which was not requested")
    content_type = response.headers.get("content-type", "")
    return {
        "url": url,
        "status": response.status_code,
        "content_type": content_type,
        "text": _decode(body, response.charset_encoding),
        "json": _read_json(body) if "json" in content_type else None,
    }


def _decode(body: bytes, charset: str | None) -> str:
    encoding = charset if charset and _CHARSET.match(charset) else "utf-8"
    try:
        return body.decode(encoding, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def _read_json(body: bytes) -> JsonValue:
    try:
        value: JsonValue = parse_json(body, MAX_BYTES)
    except JsonTextError:
        return None
    return value


_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,6})\Z")


class JsonSelectArgs(BaseModel):
    """A JSON value, and the pointer to a part of it."""

    value: JsonValue = Field(description="The JSON value to look into.")
    pointer: str = Field(default="", description="JSON pointer, such as /items/0/name.")


@tool(
    "json_select",
    JsonSelectArgs,
    description="Return the part of a JSON value that a JSON pointer names.",
)
def json_select(args: JsonSelectArgs) -> dict[str, JsonValue]:
    """Return the value at the pointer; ValueError when there is none."""
    if args.pointer and not args.pointer.startswith("/"):
        raise ValueError("a pointer must be empty or start with /")
    value = args.value
    for part in pointer_parts(args.pointer):
        value = _enter(value, part)
    return {"value": value}


def _enter(value: JsonValue, key: str) -> JsonValue:
    if isinstance(value, dict) and key in value:
        return value[key]
    if isinstance(value, list) and _INDEX.match(key) and int(key) < len(value):
        return value[int(key)]
    raise ValueError(f"nothing found at {key[:80]!r}")


MAX_SLEEP_SECONDS = 30.0


class SleepArgs(BaseModel):
    """The seconds to wait."""

    seconds: Annotated[float, Field(ge=0, le=MAX_SLEEP_SECONDS, allow_inf_nan=False)] = 1.0


@tool("sleep", SleepArgs, description="Wait for a number of seconds, at most 30.")
def sleep(args: SleepArgs) -> dict[str, float]:
    time.sleep(args.seconds)
    return {"slept_seconds": args.seconds}


# `$$`, `$name` or `${name}`; anything else that begins with `$` is ordinary text.
_PLACE = re.compile(r"\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_MAX_CHARACTERS = 64 * 1024


class TemplateArgs(BaseModel):
    """A text with `$name` or `${name}` placeholders, and their values."""

    template: str = Field(description="Text with $name or ${name} where values go.")
    values: dict[str, JsonValue] = Field(default={}, description="Values by name.")


@tool(
    "template",
    TemplateArgs,
    description="Fill $name places of a text with values; names without one stay.",
)
def template(args: TemplateArgs) -> dict[str, str]:
    """Return the filled text.

    Substituted values are not expanded again, and nothing is evaluated.
    """
    written: list[str] = []
    remaining = _MAX_CHARACTERS
    for chunk in _parts(args):
        remaining -= len(chunk)
        # Checked while the text grows: a few places and one long value make gigabytes.
        if remaining < 0:
            raise ValueError(f"the text would have more than {_MAX_CHARACTERS} characters")
        written.append(chunk)
    return {"text": "".join(written)}


def _parts(args: TemplateArgs) -> Iterator[str]:
    end = 0
    for place in _PLACE.finditer(args.template):
        yield args.template[end : place.start()]
        yield _fill(place, args.values)
        end = place.end()
    yield args.template[end:]


def _fill(place: re.Match[str], values: dict[str, JsonValue]) -> str:
    if place[1]:
        return "$"
    name = place[2] or place[3]
    if name not in values:
        return place[0]
    value = values[name]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
