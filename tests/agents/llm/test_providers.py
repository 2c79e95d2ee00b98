"""The official SDKs against loopback servers that speak their wire formats."""

import gc
import gzip
import json
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

import pytest

from agents.llm import transport
from agents.llm.anthropic import AnthropicProvider
from agents.llm.models import Provider as ProviderRow
from agents.llm.openai import OpenAIProvider
from agents.llm.provider import (
    CallTimeoutError,
    Completion,
    CompletionProvider,
    CompletionRequest,
    NoCreditError,
    ProviderError,
    ProviderUnavailableError,
    RateLimitedError,
    RefusedCallError,
    RefusedContentError,
)
from agents.llm.registry import open_provider, read_credential
from agents.llm.scripted import open_script
from agents.llm.transport import call
from diagnostics.redaction.redactor import redact
from failsoft.parsing.makers import FinishClass, ending_of
from failsoft.retry.policy import OutputMode
from tests.agents.llm import wires
from tests.scripted import ScriptedProvider

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


class Wire:
    """A loopback server that gives set answers and keeps what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        # Bytes, JSON, or a function that gives the status and the body for a request.
        self.body: Any = {}
        self.hang = threading.Event()
        self.is_hanging = self.is_trickling = False
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        wire = self

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                wire.asked.append(json.loads(self.rfile.read(size)))
                wire.paths.append(self.path)
                if wire.is_hanging:
                    wire.hang.wait(10)
                    return
                status, body = wire.status, wire.body
                if callable(body):
                    status, body = body(wire.asked[-1])
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **wire.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if wire.is_trickling:
                    # Blanks before the answer, as proxies send them to keep a connection.
                    while not wire.hang.wait(0.05):
                        self.wfile.write(b" ")
                    return
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        return Answering


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A server for one test."""
    serving = Wire()
    yield serving
    serving.hang.set()
    serving.server.shutdown()
    serving.server.server_close()


def openai_says(text: str | None, finish_reason: str = "stop", **message: object) -> dict[str, Any]:
    """A chat completion."""
    said = {"role": "assistant", "content": text, **message}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": said}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
    }


def anthropic_says(*content: dict[str, Any], stop_reason: str = "end_turn") -> dict[str, Any]:
    """A message."""
    return {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 5},
    }


def text_block(text: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": text}


def ask(
    mode: OutputMode = OutputMode.TEXT, timeout_seconds: float = 5.0, **more: Any
) -> CompletionRequest:
    """A request with plain values."""
    return CompletionRequest(
        model="m",
        system="Be brief.",
        user="Say hi",
        output_mode=mode,
        max_output_tokens=64,
        temperature=0.2,
        timeout_seconds=timeout_seconds,
        schema_name="PlanPayload",
        json_schema=SCHEMA,
        **more,
    )


def openai_at(wire: Wire) -> CompletionProvider:
    """The OpenAI adapter, opened as a worker would."""
    return open_provider(ProviderRow(name="p", adapter="openai", base_url=f"{wire.url}/v1"))


def anthropic_at(wire: Wire) -> CompletionProvider:
    """The Anthropic adapter, opened as a worker would."""
    return open_provider(ProviderRow(name="p", adapter="anthropic", base_url=wire.url))


def test_openai_asks_and_reads(wire: Wire) -> None:
    wire.body = openai_says("hi")

    assert openai_at(wire).complete(ask()) == Completion("hi", "stop", 7, 5, served_model="m")
    assert wire.paths == ["/v1/chat/completions"]
    assert wire.asked[0] == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Say hi"},
        ],
        "temperature": 0.2,
        "max_tokens": 64,
    }


def test_openai_is_sent_no_temperature_that_is_not_set(wire: Wire) -> None:
    wire.body = openai_says("hi")

    openai_at(wire).complete(replace(ask(), temperature=None))

    assert "temperature" not in wire.asked[0]


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("", "max_completion_tokens"),
        ("https://eu.api.openai.com/v1", "max_completion_tokens"),
        ("https://us.openai.azure.com/openai/v1/", "max_completion_tokens"),
        ("http://notopenai.com/v1", "max_tokens"),
        ("http://127.0.0.1:8000/v1", "max_tokens"),
    ],
)
def test_the_token_limit_has_the_name_that_the_host_takes(address: str, name: str) -> None:
    assert OpenAIProvider(address, None)._token_limit == name


@pytest.mark.slow
def test_anthropic_asks_and_reads(wire: Wire) -> None:
    wire.body = anthropic_says(text_block("hi"))

    assert anthropic_at(wire).complete(ask()) == Completion("hi", "stop", 7, 5, served_model="m")
    assert wire.paths == ["/v1/messages"]
    assert wire.asked[0] == {
        "model": "m",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Say hi"}],
        "max_tokens": 64,
    }


def test_openai_enforces_a_schema(wire: Wire) -> None:
    wire.body = openai_says("{}")

    openai_at(wire).complete(ask(OutputMode.SCHEMA))

    assert wire.asked[0]["response_format"]["json_schema"]["schema"] == SCHEMA


@pytest.mark.parametrize("arguments", ['{"a": 1}', {"a": 1}])
def test_openai_reads_a_forced_tool_call(wire: Wire, arguments: Any) -> None:
    function = {"name": "PlanPayload", "arguments": arguments}
    calls = [{"id": "1", "type": "function", "function": function}]
    wire.body = openai_says(None, "tool_calls", tool_calls=calls)

    assert openai_at(wire).complete(ask(OutputMode.TOOLS)).text == '{"a": 1}'


def test_anthropic_enforces_a_schema(wire: Wire) -> None:
    block = {"type": "tool_use", "id": "1", "name": "PlanPayload", "input": {"a": 1}}
    wire.body = anthropic_says(block, stop_reason="tool_use")

    answer = anthropic_at(wire).complete(ask(OutputMode.SCHEMA))

    assert (answer.text, answer.finish_reason) == ('{"a": 1}', "stop")
    assert wire.asked[0]["tools"][0]["input_schema"] == SCHEMA


def test_a_cut_answer_is_told_in_one_word_by_both(wire: Wire) -> None:
    wire.body = openai_says("{", "length")
    assert openai_at(wire).complete(ask()).finish_reason == "length"

    wire.body = anthropic_says(text_block("{"), stop_reason="max_tokens")
    assert anthropic_at(wire).complete(ask()).finish_reason == "length"


def test_a_refusal_is_told_in_one_word_by_both(wire: Wire) -> None:
    wire.body = openai_says(None, "stop", refusal="I will not.")
    assert openai_at(wire).complete(ask()).finish_reason == "refusal"

    wire.body = anthropic_says(text_block("I will not."), stop_reason="refusal")
    assert anthropic_at(wire).complete(ask()).finish_reason == "refusal"


@pytest.mark.parametrize("body", [openai_says(None), openai_says("")])
def test_an_empty_completion_is_an_empty_text(wire: Wire, body: dict[str, Any]) -> None:
    wire.body = body

    assert openai_at(wire).complete(ask()).text == ""


FAULTS = [
    # the status, what is raised, whether the transport may ask again
    (400, RefusedCallError, False),
    (401, RefusedCallError, False),
    (404, RefusedCallError, False),
    (408, ProviderUnavailableError, True),
    (429, RateLimitedError, True),
    (500, ProviderUnavailableError, True),
    (503, ProviderUnavailableError, True),
]


@pytest.mark.parametrize("opened", [openai_at, anthropic_at])
@pytest.mark.parametrize(("status", "error", "is_retryable"), FAULTS)
def test_faults_are_told_by_kind(
    wire: Wire, opened: Any, status: int, error: type[ProviderError], is_retryable: bool
) -> None:
    wire.status, wire.body = status, {"error": {"message": "no", "type": "t"}}
    wire.headers = {"Retry-After": "3"}

    with pytest.raises(error) as caught:
        opened(wire).complete(ask())

    assert caught.value.is_retryable is is_retryable
    assert len(wire.asked) == 1, "the SDK's own retries are off"
    if is_retryable:
        assert caught.value.retry_after_seconds == 3


GOOGLE_LIMIT = {
    "error": {
        "code": 429,
        "status": "RESOURCE_EXHAUSTED",
        "message": "quota",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}],
    }
}


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        pytest.param({"Retry-After": "Thu, 01 Jan 2099 00:00:00 GMT"}, {}, 21_600, id="a date"),
        pytest.param({}, [GOOGLE_LIMIT], 34.07, id="in the body"),
        pytest.param({}, {"error": {"message": "slow down"}}, None, id="nowhere"),
    ],
)
def test_a_provider_may_name_the_wait_in_each_of_the_usual_places(
    wire: Wire, headers: dict[str, str], body: Any, seconds: float | None
) -> None:
    wire.status, wire.headers, wire.body = 429, headers, body
    with pytest.raises(RateLimitedError) as caught:
        openai_at(wire).complete(ask())
    assert caught.value.retry_after_seconds == seconds


@pytest.mark.parametrize("opened", [openai_at, anthropic_at])
@pytest.mark.parametrize(("status", "streaming"), [(200, False), (200, True), (500, False)])
def test_an_answer_that_unpacks_to_too_many_bytes_is_not_read_on(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, opened: Any, status: int, streaming: bool
) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 1 << 20)
    wire.status, wire.headers = status, {"Content-Encoding": "gzip"}
    wire.body = gzip.compress(b" " * (4 << 20))
    with pytest.raises(RefusedCallError, match="more than 1048576 bytes"):
        opened(wire).complete(ask(streaming=streaming))


@pytest.mark.parametrize("opened", [openai_at, anthropic_at])
def test_an_error_that_does_not_end_is_given_up_in_time(wire: Wire, opened: Any) -> None:
    wire.status, wire.body, wire.is_trickling = 500, b" " * 1_000, True
    begun = time.monotonic()
    with pytest.raises(CallTimeoutError):
        opened(wire).complete(ask(timeout_seconds=0.5))
    assert time.monotonic() - begun < 5


SECRET = "sk-proj-" + token_urlsafe(32)


@pytest.mark.parametrize("opened", [openai_at, anthropic_at])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"error": {"message": "temperature:\n only 1", "code": "x"}}, ": temperature: only 1"),
        ([{"error": {"message": "no such model", "status": "NOT_FOUND"}}], ": no such model"),
        ({"object": "error", "message": "too long"}, ": too long"),
        ({"detail": "Not Found"}, ": Not Found"),
        ({"error": "model not found"}, ": model not found"),
        ({"error": {"message": f"key {SECRET} is unknown"}}, ": key [REDACTED:openai_key] is"),
        ({"detail": [{"loc": ["body", "seed"]}]}, ': [{"loc": ["body", "seed"]}]'),
        ({"error": {"message": "Provider error", "metadata": {"raw": "full"}}}, ": full"),
        (b"<html>Bad gateway</html>", ""),
        (b"", ""),
    ],
)
def test_a_refusal_says_why_in_the_words_of_its_server(
    wire: Wire, opened: Any, body: object, reason: str
) -> None:
    wire.status, wire.body = 400, body

    with pytest.raises(RefusedCallError) as caught:
        opened(wire).complete(ask())

    said = str(caught.value)
    assert said.startswith(f"the provider answered 400{reason}")
    assert SECRET[8:] not in said
    assert reason or said.endswith("400")


@pytest.mark.parametrize(("adapter", "reason"), [("openai", "overloaded"), ("anthropic", "no")])
def test_an_error_in_a_stream_says_why(adapter: str, reason: str) -> None:
    with wires.Wire(adapter, [wires.Err("{")]) as wire:
        row = ProviderRow(name="p", adapter=adapter, base_url=wire.base_url)
        with pytest.raises(ProviderUnavailableError, match=f"ended in an error: {reason}$"):
            open_provider(row).complete(ask(streaming=True))


def test_a_path_that_is_not_there_is_said_to_be_of_the_base_url(wire: Wire) -> None:
    wire.status, wire.body = 404, b"404 page not found"

    with pytest.raises(RefusedCallError, match=r"answered 404 \(a wrong model or base URL\)$"):
        openai_at(wire).complete(ask())


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, {"message": "no credit", "type": "insufficient_quota", "code": "insufficient_quota"}),
        (429, {"message": "no credit", "code": "1113"}),
        (402, {"message": "no credit", "code": 402}),
    ],
)
def test_used_up_credit_is_not_waited_for(wire: Wire, status: int, error: object) -> None:
    wire.status, wire.body = status, {"error": error}
    reply = call(openai_at(wire), ask())

    assert isinstance(reply.answer, NoCreditError)
    assert (reply.answer.error_type, reply.retries) == ("rate_limited", 0)
    assert str(reply.answer).endswith(f"answered {status}: no credit")


def streamed(*parts: object) -> bytes:
    """A stream of events."""
    return b"".join(f"data: {json.dumps(part)}\n\n".encode() for part in parts)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "message": "busy"}, RateLimitedError),
        ({"code": "rate_limit_exceeded", "message": "busy"}, RateLimitedError),
        ({"code": 502, "message": "busy"}, ProviderUnavailableError),
        ({"type": "server_error", "message": "busy"}, ProviderUnavailableError),
        ({"code": 402, "message": "busy"}, NoCreditError),
        ({"code": 400, "message": "busy"}, RefusedContentError),
        ({"code": 401, "message": "busy"}, RefusedCallError),
        ("busy", ProviderUnavailableError),
    ],
)
@pytest.mark.parametrize("place", ["answer", "choice", "stream"])
def test_an_error_in_an_answer_is_of_the_kind_that_its_code_says(
    wire: Wire, error: object, kind: type[ProviderError], place: str
) -> None:
    cut = {"finish_reason": "error", "message": {"content": ""}, "error": error}
    answers = {
        "answer": {"error": error},
        "choice": {"choices": [cut]},
        "stream": streamed({"choices": [{"delta": {"content": "{"}}]}, {"error": error}),
    }
    wire.body = answers[place]
    wire.headers = {"Content-Type": "text/event-stream"} if place == "stream" else {}

    with pytest.raises(ProviderError, match=r": busy$") as caught:
        openai_at(wire).complete(ask(streaming=place == "stream"))

    assert type(caught.value) is kind


@pytest.mark.parametrize("streaming", [False, True])
def test_an_error_in_place_of_an_answer_says_why(wire: Wire, streaming: bool) -> None:
    body = {"object": "error", "message": "too many tokens", "code": 400}
    wire.body = streamed(body) if streaming else body
    wire.headers = {"Content-Type": "text/event-stream"} if streaming else {}

    with pytest.raises(RefusedCallError, match=r"an error: too many tokens$"):
        openai_at(wire).complete(ask(streaming=streaming))


@pytest.mark.parametrize("code", ["tool_use_failed", "json_validate_failed"])
@pytest.mark.parametrize("streaming", [False, True])
def test_an_answer_that_a_server_holds_back_as_invalid_is_an_answer(
    wire: Wire, code: str, streaming: bool
) -> None:
    error = {"message": "See 'failed_generation'.", "code": code, "failed_generation": '{"a": 1'}
    wire.status, wire.body = (
        (200, streamed({"error": error})) if streaming else (400, {"error": error})
    )
    wire.headers = {"Content-Type": "text/event-stream"} if streaming else {}

    answer = openai_at(wire).complete(ask(OutputMode.SCHEMA, streaming=streaming))

    assert (answer.text, answer.finish_reason) == ('{"a": 1', code)
    assert ending_of(code) is FinishClass.MALFORMED


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_model_that_may_not_be_forced_to_call_a_tool_is_offered_it(
    wire: Wire, status: int, streaming: bool
) -> None:
    refusal = {"error": {"message": "Thinking mode does not support this tool_choice"}}
    called = {"index": 0, "id": "c", "function": {"name": "PlanPayload", "arguments": '{"a": 1}'}}
    chunk = {"choices": [{"delta": {"tool_calls": [called]}, "finish_reason": "tool_calls"}]}
    answer = streamed(chunk) if streaming else openai_says(None, tool_calls=[called])
    wire.headers = {"Content-Type": "text/event-stream"} if streaming else {}
    wire.body = lambda asked: (200, answer) if asked["tool_choice"] == "auto" else (status, refusal)

    assert openai_at(wire).complete(ask(OutputMode.TOOLS, streaming=streaming)).text == '{"a": 1}'
    assert [asked["tool_choice"] for asked in wire.asked][1:] == ["auto"]


@pytest.mark.parametrize("streaming", [False, True])
def test_a_claude_that_thinks_is_offered_its_tool_too(wire: Wire, streaming: bool) -> None:
    refusal = {"type": "error", "error": {"message": "Thinking: no tool_choice that forces tools"}}
    block = {"type": "tool_use", "id": "t", "name": "PlanPayload", "input": {"a": 1}}
    answer: Any = anthropic_says(block, stop_reason="tool_use")
    if streaming:
        piece = {"type": "input_json_delta", "partial_json": '{"a": 1}'}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": anthropic_says()},
            {"type": "content_block_start", "index": 0, "content_block": block | {"input": {}}},
            {"type": "content_block_delta", "index": 0, "delta": piece},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        ]
        answer = b"".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
        )
        wire.headers = {"Content-Type": "text/event-stream"}
    auto = {"type": "auto"}
    wire.body = lambda asked: (200, answer) if asked["tool_choice"] == auto else (400, refusal)

    assert (
        anthropic_at(wire).complete(ask(OutputMode.TOOLS, streaming=streaming)).text == '{"a": 1}'
    )
    assert len(wire.asked) == 2


def test_a_call_refused_for_another_reason_is_not_repeated(wire: Wire) -> None:
    wire.status, wire.body = 400, {"error": {"message": "no such model"}}

    with pytest.raises(RefusedCallError, match="no such model"):
        openai_at(wire).complete(ask(OutputMode.TOOLS))
    assert len(wire.asked) == 1


@pytest.mark.parametrize("opened", [openai_at, anthropic_at])
def test_an_answer_that_never_comes_is_a_timeout(wire: Wire, opened: Any) -> None:
    wire.is_hanging = True

    with pytest.raises(CallTimeoutError):
        opened(wire).complete(ask(timeout_seconds=0.2))


@pytest.mark.parametrize("opened", [openai_at, anthropic_at])
def test_an_answer_that_comes_byte_by_byte_is_a_timeout_too(wire: Wire, opened: Any) -> None:
    wire.is_trickling, wire.body = True, b" " * 100

    with pytest.raises(CallTimeoutError):
        opened(wire).complete(ask(timeout_seconds=0.2))


@pytest.mark.parametrize("opened", [openai_at, anthropic_at])
@pytest.mark.parametrize("body", [b"", b"no json", b"[]", b"{}", b'{"choices": []}', b'"x"'])
def test_a_malformed_envelope_is_refused(wire: Wire, opened: Any, body: bytes) -> None:
    wire.body = body

    with pytest.raises(ProviderError):
        opened(wire).complete(ask())


@pytest.mark.parametrize("adapter", [OpenAIProvider, AnthropicProvider])
def test_a_provider_that_is_dropped_closes_its_connections(wire: Wire, adapter: Any) -> None:
    provider = adapter(wire.url, None)
    connections = provider._client._client
    assert not connections.is_closed
    del provider
    gc.collect()
    assert connections.is_closed


@pytest.mark.parametrize("opened", [openai_at, anthropic_at])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_redirect_takes_neither_prompt_nor_key_to_another_host(
    wire: Wire, opened: Any, streaming: bool
) -> None:
    elsewhere = Wire()
    wire.status, wire.headers = 307, {"Location": f"{elsewhere.url}/x"}

    with pytest.raises(RefusedCallError, match="307, a redirect"):
        opened(wire).complete(ask(streaming=streaming))

    assert elsewhere.asked == []
    elsewhere.server.shutdown()
    elsewhere.server.server_close()


def test_an_answer_in_parts_is_the_text_of_its_parts(wire: Wire) -> None:
    thought = {"type": "thinking", "thinking": [text_block("hm")]}
    wire.body = openai_says([thought, text_block("h"), text_block("i")])  # type: ignore[arg-type] # as Mistral does

    assert openai_at(wire).complete(ask()).text == "hi"


@pytest.mark.parametrize("value", [True, 5, {"a": 1}, ["x"]])
def test_a_finish_reason_that_is_no_text_counts_as_none(wire: Wire, value: Any) -> None:
    wire.body = openai_says("hi", value)

    assert openai_at(wire).complete(ask()).finish_reason is None


@pytest.mark.parametrize("count", [-5, 2**31, True, 7.5, "7"])
def test_a_count_of_tokens_that_is_none_counts_as_not_reported(wire: Wire, count: Any) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": 5}
    wire.body = openai_says("hi") | {"usage": usage}

    answer = openai_at(wire).complete(ask())

    assert (answer.input_tokens, answer.output_tokens) == (None, 5)


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_an_address_that_no_host_can_have_is_refused(adapter: str) -> None:
    row = ProviderRow(adapter=adapter, base_url="http://\u2603.example")

    with pytest.raises(RefusedCallError, match="not a URL"):
        open_provider(row).complete(ask())


@pytest.mark.parametrize("opened", [openai_at, anthropic_at])
def test_nobody_listening_is_unavailable(wire: Wire, opened: Any) -> None:
    provider = opened(wire)
    wire.server.shutdown()
    wire.server.server_close()

    with pytest.raises(ProviderUnavailableError):
        provider.complete(ask())


def test_s0_46_the_sdk_logs_no_prompt_even_at_debug(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wire.body = openai_says("hi")

    openai_at(wire).complete(ask())

    assert "Say hi" not in caplog.text


def test_the_transport_waits_as_long_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    monkeypatch.setattr("time.sleep", naps.append)
    monkeypatch.setattr("tenacity.nap.time.sleep", naps.append)
    script = Flaky([RateLimitedError("no", retry_after_seconds=2.5)])

    reply = call(script, ask())

    assert (reply.answer, reply.retries) == (Completion("hi"), 1)
    assert 2.5 in naps


def test_the_transport_does_not_hold_a_worker_for_long() -> None:
    reply = call(Flaky([RateLimitedError("no", retry_after_seconds=60)]), ask())

    assert isinstance(reply.answer, RateLimitedError)
    assert reply.retries == 0


class Flaky:
    """Raises what it is given, then answers."""

    def __init__(self, errors: list[ProviderError]) -> None:
        self.errors = errors

    def complete(self, request: CompletionRequest) -> Completion:
        """Raise the next error; answer when none is left."""
        if self.errors:
            raise self.errors.pop(0)
        return Completion("hi")


def test_a_credential_is_read_late_and_masked_ever_after(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any
) -> None:
    settings.FAILSOFT_SECRET_DIRS = [str(tmp_path)]
    value = "0a1b2c3d" * 4
    monkeypatch.setenv("SOME_PROVIDER_KEY", value)
    (tmp_path / "key").write_text(f"{value}9\n", encoding="utf-8")

    assert read_credential("env:SOME_PROVIDER_KEY") == value
    assert read_credential(f"file:{tmp_path / 'key'}") == f"{value}9"
    assert value not in redact(f"it is {value}.")


@pytest.mark.parametrize("reference", ["env:NOT_SET_ANYWHERE", "file:/no/such", "sk-plain", "env:"])
def test_a_credential_that_cannot_be_read_refuses_the_call(reference: str) -> None:
    with pytest.raises(RefusedCallError):
        read_credential(reference)


def test_an_endpoint_may_want_no_credential() -> None:
    assert read_credential("") is None


def test_a_script_file_is_shared_and_keeps_its_place(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    path.write_text('{"text": "one"}\n{"error": "timeout"}\n{"text": "x", "repeat": true}\n')
    readers = [open_script(f"file:{path}") for _ in range(4)]

    assert readers[0].complete(ask()).text == "one"
    with pytest.raises(CallTimeoutError):
        readers[1].complete(ask())
    assert [reader.complete(ask()).text for reader in readers[2:]] == ["x", "x"]
    calls = Path(f"{path}.calls").read_text("utf-8").splitlines()
    assert [json.loads(line)["user"] for line in calls] == ["Say hi"] * 4


def test_a_script_may_hold_half_a_character(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    path.write_text('{"text": "a\\ud800b"}\n')
    assert open_script(f"file:{path}").complete(ask()).text == "a\ud800b"


def test_a_script_that_is_at_its_end_says_so() -> None:
    with pytest.raises(RefusedCallError, match="no more answers"):
        ScriptedProvider([]).complete(ask())


def test_who_answered_is_told_as_a_gateway_says_it(wire: Wire) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 5}
    wire.body = openai_says("hi") | {
        "model": "m-2026-10-01",
        "provider": "Azure",
        "system_fingerprint": "fp_1",
        "usage": usage | {"completion_tokens_details": {"reasoning_tokens": 4}},
    }
    answer = openai_at(wire).complete(ask())
    assert (answer.served_model, answer.upstream) == ("m-2026-10-01", "Azure")
    assert (answer.system_fingerprint, answer.reasoning_tokens) == ("fp_1", 4)


@pytest.mark.parametrize(
    ("headers", "upstream"),
    [
        # Never more than the host: an address may hold a key.
        (
            {"api-base": "https://u:key@eu.openai.azure.com/v1?key=x", "id": "d1"},
            "eu.openai.azure.com",
        ),
        ({"api-base": "", "id": "d1"}, "d1"),
        ({"api-base": "http://host:port", "id": "d1"}, "d1"),
        ({}, None),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_who_answered_is_told_by_a_proxy_in_its_headers(
    wire: Wire, headers: dict[str, str], upstream: str | None, streaming: bool
) -> None:
    names = {"api-base": "x-litellm-model-api-base", "id": "x-litellm-model-id"}
    wire.headers = {names[name]: value for name, value in headers.items()}
    wire.body = openai_says("hi")
    if streaming:
        wire.headers["Content-Type"] = "text/event-stream"
        chunk = {"model": "m", "choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}
        wire.body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
    answer = openai_at(wire).complete(replace(ask(), streaming=streaming))
    assert (answer.text, answer.upstream) == ("hi", upstream)


def test_what_the_envelope_tells_goes_before_the_headers(wire: Wire) -> None:
    wire.headers = {"x-litellm-model-id": "d1"}
    wire.body = openai_says("hi") | {"provider": "Azure"}
    assert openai_at(wire).complete(ask()).upstream == "Azure"


def test_a_message_names_the_model_that_wrote_it(wire: Wire) -> None:
    wire.body = anthropic_says(text_block("hi")) | {"model": "m-20261001"}
    assert anthropic_at(wire).complete(ask()).served_model == "m-20261001"
