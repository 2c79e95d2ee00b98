"""HTTP to an address that was looked at: no proxy, no redirect, bounded in time and size (S17)."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from diagnostics.outbound.addresses import Target

MAX_SECONDS = 5.0
MAX_BYTES = 1024 * 1024
OWN_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "failsoft"}


class PinnedHttpError(Exception):
    """The server could not be asked; the message says why."""


class UnreachableError(PinnedHttpError):
    """No connection to the server came about."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said; the body is as it came."""

    response: httpx.Response
    body: bytes

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.response.status_code


def ask(
    target: Target,
    deadline: float,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
) -> Answer:
    """Ask the pinned address; PinnedHttpError says what went wrong.

    `deadline` is a time of `time.monotonic`; the answer is at most 1 MiB.
    """
    request = httpx.Request(
        method,
        target.pinned_url,
        headers={**OWN_HEADERS, **(headers or {}), "Host": target.authority},
        content=content,
        # Certificates are checked against the name, not the address.
        extensions={"sni_hostname": target.host},
    )
    timeout = httpx.Timeout(max(deadline - time.monotonic(), 0.001))
    with httpx.Client(trust_env=False, timeout=timeout) as client:
        try:
            response = client.send(request, stream=True)
            return Answer(response, _read(response, deadline))
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise UnreachableError(_words(error)) from None
        except httpx.HTTPError as error:
            raise PinnedHttpError(_words(error)) from None


def _words(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return f"no answer within {MAX_SECONDS:g} s"
    return f"{type(error).__name__}: {error}"


def _read(response: httpx.Response, deadline: float) -> bytes:
    body = bytearray()
    try:
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > MAX_BYTES:
                raise PinnedHttpError(f"the answer is larger than {MAX_BYTES} bytes")
            if time.monotonic() > deadline:
                raise PinnedHttpError(f"no answer within {MAX_SECONDS:g} s")
    finally:
        response.close()
    return bytes(body)
