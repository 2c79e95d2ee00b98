"""Servers written by hand, as strict and as careless as those that people run.

Imported, it serves streamable HTTP with sessions in this process; run as `scripted.py SCRIPT`,
it serves standard input and output. SCRIPT is JSON: `tools`, `results` by tool, and faults.
"""

import gzip
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

ACCEPTED = 202
NO_SESSION = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
Json = dict[str, Any]


def tool(name: str, **fields: Any) -> Json:
    """Return a tool without arguments that only reads, unless `fields` say otherwise."""
    plain = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    return {"name": name, **plain, **fields}


def text(*texts: str, **fields: Any) -> Json:
    """Return the result of a call: some texts."""
    return {"content": [{"type": "text", "text": one} for one in texts], **fields}


class Script:
    """What a server knows: its tools and the result of each; `messages` is what it heard."""

    def __init__(self, tools: list[Json], results: dict[str, Json]) -> None:
        self.tools, self.results = tools, results
        self.messages: list[Json] = []
        self.page: Json = {}
        self.delays: dict[str, float] = {}

    def answer(self, message: Json) -> Json | None:
        """Return the answer to a message; None to a notification."""
        self.messages.append(message)
        if "id" not in message:
            return None
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        match message["method"]:
            case "initialize":
                about = {"name": "scripted", "version": "1"}
                version = min(message["params"]["protocolVersion"], "2025-06-18")
                result = {"protocolVersion": version, "capabilities": {"tools": {}}}
                return {**answer, "result": {**result, "serverInfo": about}}
            case "tools/list":
                return {**answer, "result": {"tools": self.tools, **self.page}}
            case "tools/call":
                name = message["params"]["name"]
                time.sleep(self.delays.get(name, 0))
                return {**answer, "result": self.results[name]}
        return {**answer, "error": {"code": -32601, "message": "Method not found"}}

    def calls(self) -> int:
        """Return how many calls were made."""
        return sum(message.get("method") == "tools/call" for message in self.messages)


class Site:
    """A server at an address. `refusals` answer the next calls instead of it."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.sessions: list[str] = []
        self.unknown_session: tuple[int, bytes] = (404, b"session not found")
        self.refusals: list[tuple[int, bytes]] = []
        self.authorization: str | None = None
        self.streams = self.packs = False
        self.url = ""

    def respond(self, message: Json, headers: Mapping[str, str]) -> tuple[int, bytes, Json]:
        """Return status, body and headers of the answer to a POST."""
        if self.authorization not in (None, headers.get("authorization")):
            return 401, b"", {"WWW-Authenticate": 'Bearer error="invalid_token"'}
        method, session = message.get("method"), headers.get("mcp-session-id")
        told: Json = {"Content-Type": "application/json"}
        if method == "initialize":
            self.sessions.append(f"session-{len(self.sessions)}")
            told["Mcp-Session-Id"] = self.sessions[-1]
        elif session is None:
            return 400, json.dumps({"jsonrpc": "2.0", "error": NO_SESSION}).encode(), told
        elif session not in self.sessions:
            return *self.unknown_session, told
        if method == "tools/call" and self.refusals:
            return *self.refusals.pop(0), told
        answer = self.script.answer(message)
        if answer is None:
            return ACCEPTED, b"", {}
        body = json.dumps(answer).encode()
        if self.streams:
            told["Content-Type"] = "text/event-stream"
            body = b"event: message\ndata: " + body + b"\n\n"
        if self.packs:
            told["Content-Encoding"] = "gzip"
            body = gzip.compress(body)
        return 200, body, told


@contextmanager
def serving(script: Script) -> Iterator[Site]:
    """Serve a script by HTTP with sessions, as the SDK for TypeScript does."""
    site = Site(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            heard = {name.lower(): value for name, value in self.headers.items()}
            status, body, headers = site.respond(json.loads(content), heard)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": len(body)}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_error(405)

        do_DELETE = do_GET  # noqa: N815 - the name of the base

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    site.url = f"http://127.0.0.1:{server.server_port}/mcp"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


def main() -> None:
    """Serve standard input and output."""
    told = json.loads(sys.argv[1])
    script = Script(told.get("tools", [tool("ask")]), {"ask": text("yes")})
    sys.stdout.write(told.get("says", ""))
    time.sleep(told.get("starts_after", 0))
    for line in sys.stdin:
        message = json.loads(line)
        is_early = message["method"] != "initialize" and not script.messages
        if is_early and told.get("early") == "ends":
            sys.exit(f"expected initialize, not {message['method']}")
        if is_early and told.get("early") == "silence":
            continue
        answer = script.answer(message)
        if told.get("is_modern"):
            answer = _without_handshake(answer, message["method"])
        if answer is not None:
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def _without_handshake(answer: Json | None, method: str) -> Json:
    """Return the answer of a server that knows the revision of 2026-07-28 alone."""
    whole = {"jsonrpc": "2.0", "id": (answer or {})["id"]}
    if method == "initialize":
        return {**whole, "error": {"code": -32601, "message": "Method not found"}}
    found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    result = found if method == "server/discover" else (answer or {})["result"]
    cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return {**whole, "result": {**result, **cached}}


if __name__ == "__main__":
    main()
