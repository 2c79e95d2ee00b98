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


@dataclass(frozen=True)
class Break:
    """A stream that breaks off after `text`: the connection is `reset`, or just `closed`."""

    text: str
    how: str = "reset"


@dataclass(frozen=True)
class Stall:
    """A stream that says `text` and then nothing more; `drips` goes on a letter at a time."""

    text: str
    drips: bool = False


@dataclass(frozen=True)
class Err:
    """A stream that ends in an error of the provider's own after `text`."""

    text: str


Turn = Say | Fault | Malformed | Reset | Hang | Break | Stall | Err


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


def openai_stream(turn: Say, usage: bool = True) -> list[bytes]:
    """Chunks of a chat completion, to the end and `[DONE]`."""
    whole = openai_envelope(turn)["choices"][0]
    name = "refusal" if turn.refused else "content"
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{name: piece} for piece in _pieces(turn.text)]
    for index, call in enumerate(whole["message"].get("tool_calls", ())):
        written = call["function"]["arguments"]
        begun = {"name": call["function"]["name"], "arguments": ""}
        deltas.append({"tool_calls": [{**call, "index": index, "function": begun}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in _pieces(written)
        ]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    ended = {"index": 0, "delta": {}, "finish_reason": whole["finish_reason"]}
    chunks.append({"choices": [ended]})
    if usage:
        tokens = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
        chunks.append({"choices": [], "usage": tokens})
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return [*(_sse({**base, **chunk}) for chunk in chunks), b"data: [DONE]\n\n"]


def anthropic_stream(turn: Say) -> list[bytes]:
    """Events of a message, from `message_start` to `message_stop`."""
    whole = anthropic_envelope(turn)
    start = {**whole, "content": [], "stop_reason": None}
    start["usage"] = {"input_tokens": 7, "output_tokens": 1}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        events += _block(index, block)
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    # Cumulative; some gateways repeat what they do not know as null.
    usage = {"input_tokens": None, "output_tokens": 5}
    events.append({"type": "message_delta", "delta": delta, "usage": usage})
    events.append({"type": "message_stop"})
    return [_sse(event, event["type"]) for event in events]


def _block(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    if block["type"] == "text":
        begun, written, kind, name = ({**block, "text": ""}, block["text"], "text_delta", "text")
    else:
        begun, written = {**block, "input": {}}, json.dumps(block["input"])
        kind, name = "input_json_delta", "partial_json"
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *(
            {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: piece}}
            for piece in _pieces(written)
        ),
        {"type": "content_block_stop", "index": index},
    ]


def _pieces(text: str) -> list[str]:
    return [text[at : at + 7] for at in range(0, len(text), 7)]


def _sse(value: dict[str, Any], event: str | None = None) -> bytes:
    named = f"event: {event}\n" if event else ""
    return f"{named}data: {json.dumps(value)}\n\n".encode()


# Which of the events hold what was said: those before are the opening, those after the end.
STREAMS = {"openai": openai_stream, "anthropic": anthropic_stream}
ENDS = {"openai": 3, "anthropic": 3}
ERRORS = {
    "openai": _sse({"error": {"message": "overloaded", "type": "server_error"}}),
    "anthropic": _sse(
        {"type": "error", "error": {"type": "overloaded_error", "message": "no"}}, "error"
    ),
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
        threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True).start()
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
        turn = self.wire.turns[len(self.wire.bodies) - 1]
        is_streamed = json.loads(self.wire.bodies[-1]).get("stream", False)
        if not is_streamed or not self._answer_in_pieces(turn):
            self._answer(turn)

    def _answer(self, turn: Turn) -> None:
        match turn:
            case Say():
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

    def _answer_in_pieces(self, turn: Turn) -> bool:
        """Answer a turn that is a stream; whether it is one."""
        match turn:
            case Say():
                self._stream(STREAMS[self.wire.adapter](turn))
            case Break(text, how):
                self._stream(self._beginning(text), ended=False)
                if how == "reset":
                    self._reset()
            case Err(text):
                self._stream([*self._beginning(text), ERRORS[self.wire.adapter]])
            case Stall(text, drips):
                self._stall(text, drips=drips)
            case _:
                return False
        return True

    def _beginning(self, text: str) -> list[bytes]:
        """A stream as far as it says `text`."""
        whole = STREAMS[self.wire.adapter](Say(text))
        return whole[: -ENDS[self.wire.adapter]] if text else []

    def _stream(self, events: Sequence[bytes], *, ended: bool = True) -> None:
        self.protocol_version = "HTTP/1.1"
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self._chunk(event)
        if ended:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _stall(self, text: str, *, drips: bool) -> None:
        beginning = self._beginning(text)
        self._stream(beginning, ended=False)
        pause = 0.05 if drips else HANG_SECONDS
        try:
            while not self.wire.released.wait(pause) and drips:
                self._chunk(beginning[-2])
        except OSError:
            return  # Nobody listens any more.

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
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
