"""A server's address and key, and JSON requests to it with the standard library alone."""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 10
ANSWER_BYTES = 1 << 20
URLS = ("FAILSOFT_URL", "OTEL_EXPORTER_OTLP_ENDPOINT")
KEYS = ("FAILSOFT_API_KEY", "FAILSOFT_KEY")


class NoServerError(Exception):
    """No HTTP answer came; the message says why."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A key is for the server that was named, and for no other that it names."""

    def redirect_request(self, *args: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects())


@dataclass(frozen=True, slots=True)
class ServerReply:
    """The status and the JSON of an answer; None where the body is not JSON."""

    status: int
    body: Any

    @property
    def detail(self) -> str:
        body = self.body if isinstance(self.body, Mapping) else {}
        errors = body.get("errors") or [{}]
        return str(body.get("detail") or errors[0].get("message") or f"HTTP {self.status}")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is, without a slash at its end, and the key for it."""

    url: str
    key: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] = {},
        seconds: float = TIMEOUT_SECONDS,
    ) -> ServerReply:
        """Return the answer, also of a refusal or a redirect. Raises NoServerError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **headers, **self.headers}
        request = urllib.request.Request(  # noqa: S310 - `connection_of` takes HTTP alone
            self.url + path, data, headers, method=method
        )
        try:
            with _OPENER.open(request, timeout=seconds) as answer:
                return ServerReply(answer.status, _json_of(answer.read(ANSWER_BYTES)))
        except urllib.error.HTTPError as error:
            with error:
                return ServerReply(error.code, _json_of(error.read(ANSWER_BYTES)))
        except (OSError, ValueError) as error:
            raise NoServerError(str(getattr(error, "reason", error))) from None


def connection_of(url: str | None, key: str | None) -> ServerAddress:
    """Return the connection of arguments, else of the environment. Raises ValueError."""
    url = _first(url, URLS).rstrip("/")
    if not url:
        raise ValueError(f"no address: set {URLS[0]}")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ValueError(f"{url} is no address: http://HOST:PORT or https://HOST")
    return ServerAddress(url, _first(key, KEYS))


def _first(given: str | None, names: Sequence[str]) -> str:
    values = (given, *(os.environ.get(name) for name in names))
    return next((text.strip() for text in values if text), "")


def _json_of(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(body)
    except ValueError:
        return None
