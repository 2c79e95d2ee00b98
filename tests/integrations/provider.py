"""A provider on the loopback that answers as told, in the formats of OpenAI, Anthropic, Google."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

MODEL = "scripted-1"
INPUT_TOKENS, OUTPUT_TOKENS = 31, 17
FAULTS = {429: "rate_limit_error", 500: "api_error"}
RESPONSE_ID = "resp-{}"
GOOGLE_STOPS = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
STOPS = {"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}


@dataclass(slots=True)
class Provider:
    """What is answered next; the last reply is repeated."""

    url: str
    replies: list[dict[str, Any]] = field(default_factory=list)
    is_tool: bool = False
    requests: int = 0
    total: int = 0
    # Lets a late answer go when its cell is over.
    is_over: Event = field(default_factory=Event)

    def play(self, replies: list[dict[str, Any]], *, is_tool: bool) -> None:
        """Begin another cell."""
        self.is_over.set()
        self.is_over = Event()
        self.replies, self.is_tool, self.requests = replies, is_tool, 0

    def next_reply(self) -> tuple[int, dict[str, Any]]:
        """Return the number of the answer and what it says."""
        place = min(self.requests, len(self.replies) - 1)
        self.requests += 1
        self.total += 1
        return self.total, self.replies[place]


@contextmanager
def running_provider() -> Iterator[Provider]:
    """Serve on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    provider = Provider(f"http://127.0.0.1:{server.server_port}")
    server.provider = provider  # type: ignore[attr-defined] # read by its handler
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        asked = json.loads(self.rfile.read(length) or b"{}")
        provider: Provider = self.server.provider  # type: ignore[attr-defined]
        number, reply = provider.next_reply()
        if seconds := reply.get("seconds"):
            provider.is_over.wait(seconds)
        status = reply.get("status", 200)
        if status >= 400:
            fault = {"message": "scripted", "type": FAULTS[status], "code": "scripted"}
            self._send(status, {"type": "error", "error": fault})
            return
        tool = _tool_of(asked) if provider.is_tool and "refusal" not in reply else None
        write, cut = _completion, _completion_events
        if self.path.endswith("/messages"):
            write, cut = _message, _message_events
        elif self.path.endswith("/responses"):
            write, cut = _response, _response_events
        elif ":" in self.path:
            write, cut = _content, _content_events
        whole = write(number, reply, tool)
        if asked.get("stream") or ":stream" in self.path:
            self._stream(cut(whole))
        else:
            self._send(200, whole)

    def _send(self, status: int, body: dict[str, Any]) -> None:
        packed = json.dumps(body).encode()
        self._answer(status, "application/json", packed)

    def _stream(self, events: Iterator[tuple[str, Any]]) -> None:
        lines = [
            (f"event: {name}\n" if name else "")
            + f"data: {body if isinstance(body, str) else json.dumps(body)}\n\n"
            for name, body in events
        ]
        self._answer(200, "text/event-stream", "".join(lines).encode())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        # A client that has given up does not read the end.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Say nothing."""


def _tool_of(asked: dict[str, Any]) -> str | None:
    """Name the first tool that was offered."""
    for tool in asked.get("tools") or []:
        (offered,) = tool.get("functionDeclarations") or [tool.get("function") or tool]
        return str(offered["name"])
    return None


def _text_of(reply: dict[str, Any]) -> str | None:
    text = reply.get("text")
    return text.lstrip("\n") if isinstance(text, str) else None


def _completion(number: int, reply: dict[str, Any], tool: str | None) -> dict[str, Any]:
    """Answer as OpenAI's chat completions do."""
    message: dict[str, Any] = {"role": "assistant", "content": _text_of(reply)}
    message["refusal"] = reply.get("refusal")
    finish = reply.get("finish", "stop")
    if tool is not None and message["content"]:
        call = {"name": tool, "arguments": message["content"]}
        message["tool_calls"] = [{"id": f"call-{number}", "type": "function", "function": call}]
        message["content"] = None
        finish = reply.get("finish", "tool_calls")
    return {
        "id": RESPONSE_ID.format(number),
        "object": "chat.completion",
        "created": 1_795_271_527,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {
            "prompt_tokens": INPUT_TOKENS,
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def _completion_events(whole: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Cut a completion into three pieces, its usage and the end."""
    (choice,) = whole["choices"]
    head = {**whole, "object": "chat.completion.chunk", "usage": None}
    message = choice["message"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[str, Any]:
        return "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for call in message.get("tool_calls", []):
        text = call["function"]["arguments"]
        first = {**call["function"], "arguments": text[:7]}
        yield chunk({"tool_calls": [{**call, "index": 0, "function": first}]})
        rest = {"arguments": text[7:]}
        yield chunk({"tool_calls": [{"index": 0, "function": rest}]})
    text = message["content"] or ""
    for part in (text[:7], text[7:]):
        if part:
            yield chunk({"content": part})
    if message.get("refusal"):
        yield chunk({"refusal": message["refusal"]})
    yield chunk({}, choice["finish_reason"])
    yield "", {**head, "choices": [], "usage": whole["usage"]}
    yield "", "[DONE]"


def _message(number: int, reply: dict[str, Any], tool: str | None) -> dict[str, Any]:
    """Answer as Anthropic's messages do."""
    text = reply.get("refusal", _text_of(reply))
    finish = STOPS.get(reply.get("finish", ""), "refusal" if "refusal" in reply else "end_turn")
    content = [{"type": "text", "text": text}] if text else []
    if tool is not None and text:
        try:
            arguments = json.loads(text)
        except ValueError:
            arguments = {}
        content = [{"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": arguments}]
        finish = finish if finish == "max_tokens" else "tool_use"
    return {
        "id": RESPONSE_ID.format(number),
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": finish,
        "stop_sequence": None,
        "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS},
    }


def _message_events(whole: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Cut a message into the events of a stream."""
    nothing_yet = {**whole["usage"], "output_tokens": 0}
    start = {**whole, "content": [], "stop_reason": None, "usage": nothing_yet}
    yield "message_start", {"type": "message_start", "message": start}
    for index, block in enumerate(whole["content"]):
        is_text = block["type"] == "text"
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        key, kind = ("text", "text_delta") if is_text else ("partial_json", "input_json_delta")
        text = block["text"] if is_text else json.dumps(block["input"])
        about = {"index": index}
        yield (
            "content_block_start",
            {"type": "content_block_start", **about, "content_block": empty},
        )
        for part in (text[:7], text[7:]):
            delta = {"type": kind, key: part}
            yield ("content_block_delta", {"type": "content_block_delta", **about, "delta": delta})
        yield "content_block_stop", {"type": "content_block_stop", **about}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": whole["usage"]["output_tokens"]}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def _response(number: int, reply: dict[str, Any], tool: str | None) -> dict[str, Any]:
    """Answer as OpenAI's responses do."""
    text = _text_of(reply)
    part: dict[str, Any] = {"type": "output_text", "text": text or "", "annotations": []}
    if "refusal" in reply:
        part = {"type": "refusal", "refusal": reply["refusal"]}
    item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [part]}
    if tool is not None and text:
        item = {"type": "function_call", "call_id": f"call-{number}", "name": tool}
        item["arguments"] = text
    reason = INCOMPLETE.get(reply.get("finish", ""))
    status = "incomplete" if reason else "completed"
    return {
        "id": RESPONSE_ID.format(number),
        "object": "response",
        "created_at": 1_795_271_527,
        "status": status,
        "incomplete_details": {"reason": reason} if reason else None,
        "error": None,
        "model": MODEL,
        "output": [{"id": f"item-{number}", "status": status, **item}],
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "usage": {
            "input_tokens": INPUT_TOKENS,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": OUTPUT_TOKENS,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def _response_events(whole: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Cut a response of one text into the events of a stream."""
    (item,) = whole["output"]
    (part,) = item["content"]
    place = {"output_index": 0, "content_index": 0, "item_id": item["id"]}
    open_item = {**item, "status": "in_progress", "content": []}
    text = part["text"]
    opened = {**whole, "status": "in_progress", "output": [], "usage": None}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": opened}),
        ("response.output_item.added", {"output_index": 0, "item": open_item}),
        ("response.content_part.added", {**place, "part": {**part, "text": ""}}),
        ("response.output_text.delta", {**place, "delta": text[:7], "logprobs": []}),
        ("response.output_text.delta", {**place, "delta": text[7:], "logprobs": []}),
        ("response.output_text.done", {**place, "text": text, "logprobs": []}),
        ("response.content_part.done", {**place, "part": part}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        (f"response.{whole['status']}", {"response": whole}),
    ]
    for number, (name, body) in enumerate(events):
        yield name, {"type": name, "sequence_number": number, **body}


def _content(number: int, reply: dict[str, Any], tool: str | None) -> dict[str, Any]:
    """Answer as Google's generateContent does."""
    text = reply.get("refusal", _text_of(reply))
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    if tool is not None and text:
        parts = [{"functionCall": {"name": tool, "args": json.loads(text)}}]
    candidate = {
        "index": 0,
        "content": {"role": "model", "parts": parts},
        "finishReason": GOOGLE_STOPS.get(reply.get("finish", ""), "STOP"),
    }
    return {
        "responseId": RESPONSE_ID.format(number),
        "modelVersion": MODEL,
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": INPUT_TOKENS,
            "candidatesTokenCount": OUTPUT_TOKENS,
            "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def _content_events(whole: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Cut a content into two pieces; the second one has the end and the usage."""
    (candidate,) = whole["candidates"]
    content = candidate["content"]
    (part,) = content["parts"] or [{"text": ""}]
    text = part.get("text", "")
    first = {"index": 0, "content": {**content, "parts": [{"text": text[:7]}]}}
    rest = {**candidate, "content": {**content, "parts": [{"text": text[7:]}]}}
    yield "", {**whole, "candidates": [first], "usageMetadata": None}
    yield "", {**whole, "candidates": [rest]}
