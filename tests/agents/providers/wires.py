"""A loopback server that follows a script in OpenAI's or Anthropic's wire format."""

import json
import socket
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANG_SECONDS = 10


@dataclass(frozen=True)
class Say:
    """An answer; `cut` when the token limit ended it, `refused` when the model declined."""

    text: str = ""
    cut: bool = False
    refused: bool = False
    # (id, name, arguments) of native tool calls
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()


@dataclass(frozen=True)
class Fault:
    """An answer that is none: a status with an optional Retry-After."""

    status: int
    retry_after: str | None = None


@dataclass(frozen=True)
class Malformed:
    """Bytes that are no envelope, with status 200."""

    body: bytes


@dataclass(frozen=True)
class Reset:
    """The connection is reset after the request was read."""


@dataclass(frozen=True)
class Hang:
    """Nothing is answered."""


Turn = Say | Fault | Malformed | Reset | Hang


def openai_envelope(turn: Say) -> dict[str, Any]:
    """A chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.text}
    finish_reason = "length" if turn.cut else "stop"
    if turn.refused:
        message |= {"content": None, "refusal": turn.text}
    if turn.calls:
        finish_reason = "tool_calls"
        message["tool_calls"] = [
            {
                "id": identity,
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for identity, name, arguments in turn.calls
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": message}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
    }


def anthropic_envelope(turn: Say) -> dict[str, Any]:
    """A message."""
    content: list[dict[str, Any]] = []
    if turn.text:
        content.append({"type": "text", "text": turn.text})
    content += [
        {"type": "tool_use", "id": identity, "name": name, "input": arguments}
        for identity, name, arguments in turn.calls
    ]
    reason = "max_tokens" if turn.cut else "refusal" if turn.refused else "end_turn"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "tool_use" if turn.calls else reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 5},
    }


ENVELOPES = {"openai": openai_envelope, "anthropic": anthropic_envelope}
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}


@dataclass
class Wire:
    """The server: what it will say, and the bytes and headers it was asked with."""

    adapter: str
    turns: list[Turn]
    bodies: list[bytes] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Wire":
        self.server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Answering", (_Answering,), {"wire": self})
        )
        threading.Thread(
            target=self.server.serve_forever, args=[0.01], daemon=True
        ).start()
        return self

    def __exit__(self, *args: object) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    @property
    def base_url(self) -> str:
        """What a provider's row says of it."""
        path = "/v1" if self.adapter == "openai" else ""
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    @property
    def prompts(self) -> list[tuple[bytes, bytes]]:
        """The system and the user message of each request, as bytes."""
        return [_prompt(self.adapter, json.loads(body)) for body in self.bodies]

    @property
    def is_at_its_end(self) -> bool:
        """Whether everything was said."""
        return len(self.bodies) == len(self.turns)


def _prompt(adapter: str, asked: dict[str, Any]) -> tuple[bytes, bytes]:
    messages: Sequence[dict[str, str]] = asked["messages"]
    if adapter == "anthropic":
        messages = [{"role": "system", "content": asked["system"]}, *messages]
    assert [message["role"] for message in messages] == ["system", "user"]
    system, user = (message["content"].encode() for message in messages)
    return system, user


class _Answering(BaseHTTPRequestHandler):
    wire: Wire

    def do_POST(self) -> None:
        self.wire.paths.append(self.path)
        self.wire.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        match self.wire.turns[len(self.wire.bodies) - 1]:
            case Say() as turn:
                envelope = ENVELOPES[self.wire.adapter](turn)
                self._send(200, json.dumps(envelope).encode())
            case Malformed(body):
                self._send(200, body)
            case Fault(status, retry_after):
                headers = {"Retry-After": retry_after} if retry_after else {}
                said = b'{"error": {"type": "t", "message": "no"}}'
                self._send(status, said, headers)
            case Hang():
                self.wire.released.wait(HANG_SECONDS)
                self.close_connection = True
            case Reset():
                self._reset()

    def _send(
        self, status: int, body: bytes, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _reset(self) -> None:
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()
        self.close_connection = True

    def log_message(self, *args: object) -> None:
        pass
