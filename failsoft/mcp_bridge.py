"""`failsoft mcp`: an assistant's messages on standard input, answered by a server's /mcp.

The tools are the server's; this passes JSON-RPC messages on, one line each, with the key.
"""

import json
import os
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from email.message import Message
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

URL, KEY = "FAILSOFT_URL", "FAILSOFT_API_KEY"
SECONDS = 60.0
MAX_MESSAGE_BYTES = 64 << 10
MAX_ANSWER_BYTES = 1 << 20
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
NOT_ANSWERED = -32000
Json = dict[str, Any]


class BridgeError(Exception):
    """The server did not answer, or not with a message."""


class _NoRedirects(HTTPRedirectHandler):
    """A key is for the server that was named, and no other."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


class Bridge:
    """Posts messages to one server; nothing else is kept than the version that it speaks."""

    def __init__(self, url: str, key: str) -> None:
        """`url`: of the server, as in http://127.0.0.1:8000."""
        self._url = f"{url.rstrip('/')}/mcp"
        self._key = key
        self._version: str | None = None
        self._opener: OpenerDirector = build_opener(_NoRedirects())

    def answer(self, line: bytes) -> str | None:
        """Return the answer to a message as a line; None for a notification."""
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            return _failure(None, "a message is one JSON object a line")
        identifier = message.get("id")
        try:
            found = self._post(line, message)
        except BridgeError as error:
            return None if identifier is None else _failure(identifier, str(error))
        if identifier is None:
            return None
        if message.get("method") == "initialize":
            self._version = (found.get("result") or {}).get("protocolVersion")
        return json.dumps(found, separators=(",", ":"))

    def _post(self, line: bytes, message: Json) -> Json:
        if len(line) > MAX_MESSAGE_BYTES:
            raise BridgeError(f"a message has at most {MAX_MESSAGE_BYTES} bytes")
        request = Request(self._url, line, self._headers(message))  # noqa: S310 - main checks it
        try:
            with self._opener.open(request, timeout=SECONDS) as answer:
                status, body = answer.status, answer.read(MAX_ANSWER_BYTES + 1)
        except HTTPError as error:
            status, body = error.code, error.read(MAX_ANSWER_BYTES)
        except (URLError, OSError) as error:
            raise BridgeError(f"{self._url} does not answer: {error}") from error
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if isinstance(found, dict) and "jsonrpc" in found:
            return found
        detail = found.get("detail") if isinstance(found, dict) else "no message of the protocol"
        raise BridgeError(f"{self._url} answers {status}: {detail}")

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        """Return the headers of a message; since 2026-07-28 they repeat what it is about."""
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
        if version is not None:
            headers["Mcp-Method"] = _header(message.get("method"))
            if "name" in params:
                headers["Mcp-Name"] = _header(params["name"])
        if version or self._version:
            headers["MCP-Protocol-Version"] = _header(version or self._version)
        return headers


def run_bridge(lines: Iterator[bytes], out: IO[str]) -> int:
    """Answer messages until the input ends; 2 without the environment that names a server."""
    url, key = os.environ.get(URL, ""), os.environ.get(KEY, "")
    if urlsplit(url).scheme not in ("http", "https") or not key:
        sys.stderr.write(f"failsoft mcp: set {URL} and {KEY} (a key that may read)\n")
        return 2
    bridge = Bridge(url, key)
    for line in lines:
        if line.strip() and (answer := bridge.answer(line)) is not None:
            out.write(f"{answer}\n")
            out.flush()
    return 0


def _failure(identifier: object, text: str) -> str:
    error = {"code": NOT_ANSWERED, "message": text}
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "error": error})


def _header(value: object) -> str:
    """Return a text as the value of a header; one that no header can carry in base64."""
    text = str(value)
    if text.isascii() and text.isprintable() and text == text.strip():
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="
