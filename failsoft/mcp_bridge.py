"""`failsoft mcp`: an assistant's messages on standard input, answered by a server's /mcp.

The tools are the server's; this passes JSON-RPC messages on, one a line, with the key.
"""

import json
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import IO, Any

from failsoft.telemetry.connection import NoServerError, ServerAddress, connection_of

PATH = "/mcp"
SECONDS = 60.0
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
NOT_ANSWERED = -32000


class Bridge:
    """Passes messages on; nothing is kept but the version of the protocol that was agreed on."""

    def __init__(self, server: ServerAddress) -> None:
        self._server = server
        self._version: str | None = None

    def answer(self, line: bytes) -> str | None:
        """Return the answer to a message as a line; None for a notification."""
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            return _failure(None, "a message is one JSON object a line")
        identifier, url = message.get("id"), self._server.url + PATH
        try:
            reply = self._server.request("POST", PATH, message, self._headers(message), SECONDS)
        except NoServerError as error:
            failure = _failure(identifier, f"{url} does not answer: {error}")
            return None if identifier is None else failure
        if identifier is None:
            return None
        if not (isinstance(reply.body, dict) and "jsonrpc" in reply.body):
            return _failure(identifier, f"{url} answers {reply.status}: {reply.detail}")
        if message.get("method") == "initialize":
            self._version = (reply.body.get("result") or {}).get("protocolVersion")
        return json.dumps(reply.body, separators=(",", ":"))

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        """Return the headers of a message; since 2026-07-28 they repeat what it is about."""
        headers = {"Accept": "application/json, text/event-stream"}
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
    try:
        server = connection_of(None, None)
    except ValueError as error:
        sys.stderr.write(f"failsoft mcp: {error}\n")
        return 2
    bridge = Bridge(server)
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
