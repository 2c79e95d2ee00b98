"""The same 14 runs are the same series, by whatever door and in whatever convention they come."""

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from django.test import Client
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Status, StatusCode, Tracer
from pytest_django.live_server_helper import LiveServer

import failsoft
from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.models import SpanVerdict
from diagnostics.ingest.receiving import PATIENCE, settle_verdicts
from diagnostics.ingest.span_runs import settle_runs
from diagnostics.store.aggregation import fold
from diagnostics.store.partitions import ensure_partitions
from diagnostics.store.run_models import AgentRun
from failsoft.telemetry.connection import ServerAddress
from failsoft.telemetry.runs import send_with
from failsoft.telemetry.sending import OtelSending
from failsoft.telemetry.setup import Setup
from tests.diagnostics import otlp_bodies as bodies
from tests.diagnostics.builders import degraded, succeeded, wire_event

pytestmark = pytest.mark.django_db(transaction=True)
# Good, not JSON, breaking the schema, or no answer in time.
RUNS = (*("g", "g", "g", "g", "g", "g"), *("xg", "xg", "bxg", "tg"), *("xxx", "bbb", "xt", "t"))
TEXTS = {"g": '{"steps": []}', "x": "Sure! First", "b": '{"steps": 1}'}
ERRORS = {"x": "not_json", "b": "schema_invalid"}
SCHEMA: dict[str, Any] = {
    "title": "Plan",
    "type": "object",
    "required": ["steps"],
    "properties": {"steps": {"type": "array"}},
}
NODE, MODEL = "planner", "gpt-5-mini"
TIMED_OUT = ("exception", {"exception.type": "openai.APITimeoutError"})
# When it was judged; how the waits before attempts and what they cost were told.
LEFT_OUT = {"judged_at", "retry_seconds", "retry_tokens"}


class Caller:
    """Whoever holds a key of a project."""

    def __init__(self) -> None:
        ensure_partitions()
        slug = uuid4().hex[:8]
        self.project = Project.objects.create(slug=slug, name=slug)
        register_schema(self.project, NODE, SCHEMA, "1")
        self.key = issue_key(self.project, "agent", [Scope.INGEST, Scope.READ]).text

    def post(
        self, path: str, body: bytes | str, kind: str = "application/json", **more: str
    ) -> None:
        headers = {"Authorization": f"Bearer {self.key}", **more}
        answer = Client().post(path, body, content_type=kind, headers=headers)
        assert answer.status_code == 200, answer.text

    def series(self) -> dict[str, Any]:
        SpanVerdict.objects.update(received_at=clock.now() - 2 * PATIENCE)
        settle_verdicts()
        AgentRun.objects.exclude(settles_at=None).update(settles_at=clock.now())
        settle_runs()
        while fold():
            pass
        headers = {"Authorization": f"Bearer {self.key}"}
        (series,) = Client().get("/api/v1/series", headers=headers).json()["items"]
        return {name: value for name, value in series.items() if name not in LEFT_OUT}


class Call(NamedTuple):
    """A call of a run: its place, what it was answered with, and when it ended."""

    run: str
    attempt: int
    word: str
    at: datetime


def calls(word_of_run: str) -> list[Call]:
    """Return the calls of one run, some seconds apart."""
    run, begin = uuid4().hex, clock.now() - timedelta(minutes=5)
    moments = (begin + timedelta(seconds=3 * place) for place in range(len(word_of_run)))
    return [Call(run, *told) for told in zip(range(1, 9), word_of_run, moments, strict=False)]


COMMON = {"provider": "openai", "model": MODEL, "source": "bot", "environment": "prod"}
MEASURED = {"latency_ms": 1000}
USED = {"input_tokens": 31, "output_tokens": 17, "finish_reason": "stop"}


def events_of(word_of_run: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a run as an agent posts them that judges its answers itself."""
    for call in calls(word_of_run):
        shared = {**COMMON, "correlation_id": call.run, "occurred_at": call.at.isoformat()}
        told = {**shared, **MEASURED, "attempt": call.attempt, "event_id": str(uuid4())}
        if call.word == "t":
            told |= {"finish_reason": None, "input_tokens": None, "output_tokens": None}
            cause = {"call_error_type": "timeout"}
            yield succeeded(**told, name=f"graph.{NODE}.provider_error", attributes=cause)
        elif call.word == "g":
            yield succeeded(**told, **USED, name=f"graph.{NODE}.succeeded")
        else:
            error = ERRORS[call.word]
            name = f"graph.{NODE}.parse_invalid"
            yield wire_event(**told, **USED, name=name, parse_error_type=error)
    if call.word != "g":
        reason = "timeout" if call.word == "t" else f"{NODE}_parse_failed"
        ending = {"attempts": call.attempt, "reason": reason}
        yield degraded(**shared, **ending, name=f"graph.{NODE}.degraded")


def answers_of(word_of_run: str) -> Iterator[dict[str, Any]]:
    """Yield the answers of a run as the model gave them."""
    for call in calls(word_of_run):
        told = {**COMMON, **MEASURED, "name": "answered", "node": NODE}
        told |= {"correlation_id": call.run, "occurred_at": call.at.isoformat()}
        failed = call.word == "t"
        yield told | ({"error": "TimeoutError"} if failed else {"text": TEXTS[call.word], **USED})


def post_events(caller: Caller) -> None:
    items = [item for run in RUNS for item in events_of(run)]
    caller.post("/api/v1/events", json.dumps(items))


def post_lines(caller: Caller) -> None:
    lines = [json.dumps(item) for run in RUNS for item in events_of(run)]
    caller.post("/api/v1/events", "\n".join(lines), "application/x-ndjson")


def post_answers(caller: Caller) -> None:
    items = [item for run in RUNS for item in answers_of(run)]
    caller.post("/api/v1/events", json.dumps(items))


Told = tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]
GENAI = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": MODEL,
}
GENAI_USED = {
    "gen_ai.usage.input_tokens": 31,
    "gen_ai.usage.output_tokens": 17,
    "gen_ai.response.finish_reasons": ["stop"],
}
# Of each convention: what it says of any call, and what of an answer.
CONVENTIONS: dict[str, tuple[dict[str, Any], Callable[[str], Told]]] = {
    "genai": (GENAI, lambda text: ({**GENAI_USED, "gen_ai.output.messages": json.dumps(
        [{"role": "assistant", "parts": [{"type": "text", "content": text}]}])}, [])),
    "genai, structured": (GENAI, lambda text: ({**GENAI_USED, "gen_ai.output.messages": [
        {"role": "assistant", "parts": [{"type": "text", "content": text}]}]}, [])),
    "genai, event": (GENAI, lambda text: (GENAI_USED, [("gen_ai.choice", {
        "gen_ai.event.content": json.dumps({"index": 0, "message": {"content": text}})})])),
    "openinference": (
        {"openinference.span.kind": "LLM", "llm.provider": "openai", "llm.model_name": MODEL},
        lambda text: ({
            "llm.output_messages.0.message.content": text, "llm.finish_reason": "stop",
            "llm.token_count.prompt": 31, "llm.token_count.completion": 17}, [])),
    "traceloop": (
        {"gen_ai.system": "openai", "gen_ai.request.model": MODEL, "llm.request.type": "chat"},
        lambda text: ({
            "gen_ai.completion.0.content": text, "gen_ai.completion.0.finish_reason": "stop",
            "gen_ai.usage.prompt_tokens": 31, "gen_ai.usage.completion_tokens": 17}, [])),
    "vercel": (
        {"ai.operationId": "ai.generateText.doGenerate", "ai.model.id": MODEL,
         "ai.model.provider": "openai"},
        lambda text: ({
            "ai.response.text": text, "ai.response.finishReason": "stop",
            "ai.usage.inputTokens": 31, "ai.usage.outputTokens": 17}, [])),
    "langsmith": (
        {"langsmith.span.kind": "llm", "langsmith.metadata.ls_provider": "openai",
         "langsmith.metadata.ls_model_name": MODEL},
        lambda text: ({**GENAI_USED, "gen_ai.completion": json.dumps(
            {"generations": [[{"text": text}]]})}, [])),
    "logfire": (GENAI, lambda text: ({"gen_ai.response.finish_reasons": ["stop"],
        "response_data": json.dumps({
            "message": {"role": "assistant", "content": text},
            "usage": {"prompt_tokens": 31, "completion_tokens": 17}})}, [])),
    "mlflow": (
        {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.llm.model": f'"{MODEL}"',
         "mlflow.llm.provider": '"openai"'},
        lambda text: ({
            "mlflow.chat.tokenUsage": json.dumps({"input_tokens": 31, "output_tokens": 17}),
            "mlflow.spanOutputs": json.dumps(
                {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})}, [])),
    "langfuse": (
        {"langfuse.observation.type": "generation", "gen_ai.system": "openai",
         "langfuse.observation.model.name": MODEL},
        lambda text: ({
            "langfuse.observation.output": json.dumps({"role": "assistant", "content": text}),
            "langfuse.observation.metadata.finish_reason": "stop",
            "langfuse.observation.usage_details": json.dumps({"input": 31, "output": 17})}, [])),
}  # fmt: skip
RESOURCE = {"service.name": "bot", "deployment.environment.name": "prod", "failsoft.node": NODE}


def span_of(call: Call, convention: str) -> Span:
    shared, answer = CONVENTIONS[convention]
    failed = call.word == "t"
    attributes, events = ({}, [TIMED_OUT]) if failed else answer(TEXTS[call.word])
    end_ns = int(call.at.timestamp() * 1e6) * 1000
    packed = bodies.span(
        trace_id=call.run,
        span_id=f"{call.attempt:016x}",
        start_ns=end_ns - 10**9,
        end_time_unix_nano=end_ns,
        is_error=failed,
        events=events,
    )
    del packed.attributes[:]
    packed.attributes.extend(bodies.key_values({**shared, **attributes}))
    return packed


def request_of(spans: list[Span]) -> Any:
    request = bodies.traces(*spans)
    del request.resource_spans[0].resource.attributes[:]
    request.resource_spans[0].resource.attributes.extend(bodies.key_values(RESOURCE))
    return request


@pytest.mark.parametrize("door", [post_lines, post_answers], ids=["lines", "answers"])
def test_events_of_any_form_give_the_same_series(door: Callable[[Caller], None]) -> None:
    posting, other = Caller(), Caller()
    post_events(posting)
    door(other)
    assert other.series() == series_as_posted(posting)


def series_as_posted(caller: Caller) -> dict[str, Any]:
    series = caller.series()
    assert (series["runs"], series["degraded"], series["first_pass_rate"]) == (14, 4, 6 / 14)
    return series


@pytest.mark.parametrize("is_packed", [True, False], ids=["protobuf", "JSON"])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_spans_of_any_convention_give_the_same_series(convention: str, *, is_packed: bool) -> None:
    posting, telling = Caller(), Caller()
    post_events(posting)
    request = request_of([span_of(call, convention) for run in RUNS for call in calls(run)])
    if is_packed:
        telling.post("/v1/traces", request.SerializeToString(), "application/x-protobuf")
    else:
        telling.post("/v1/traces", bodies.as_json(request))
    assert telling.series() == series_as_posted(posting)


@pytest.mark.parametrize("is_packed", [True, False], ids=["protobuf", "JSON"])
def test_batches_of_a_collector_give_the_same_series(*, is_packed: bool) -> None:
    """It joins what comes from many processes, in any order, and compresses it."""
    posting, telling = Caller(), Caller()
    post_events(posting)
    told = [call for run in RUNS for call in calls(run)]
    Random(14).shuffle(told)
    for begin in range(0, len(told), 8):
        batch = ExportTraceServiceRequest()
        for place, call in enumerate(told[begin : begin + 8]):
            convention = list(CONVENTIONS)[place % len(CONVENTIONS)]
            batch.MergeFrom(request_of([span_of(call, convention)]))
        body = batch.SerializeToString() if is_packed else bodies.as_json(batch)
        kind = "application/x-protobuf" if is_packed else "application/json"
        telling.post("/v1/traces", gzip.compress(body), kind, **{"Content-Encoding": "gzip"})
    assert telling.series() == series_as_posted(posting)


@pytest.mark.parametrize("is_span_first", [True, False])
def test_answers_in_log_records_give_the_same_series(*, is_span_first: bool) -> None:
    posting, telling = Caller(), Caller()
    post_events(posting)
    told = [call for run in RUNS for call in calls(run)]
    request = request_of([span_of(call, "genai") for call in told])
    for span in request.resource_spans[0].scope_spans[0].spans:
        silent = [pair for pair in span.attributes if pair.key != "gen_ai.output.messages"]
        del span.attributes[:]
        span.attributes.extend(silent)
    records = bodies.logs(
        *(
            bodies.log_record(
                "gen_ai.choice",
                {},
                {"index": 0, "finish_reason": "stop", "message": {"content": TEXTS[call.word]}},
                call.run,
                f"{call.attempt:016x}",
            )
            for call in told
            if call.word in TEXTS
        ),
        resource=RESOURCE,
    )
    sent = [("/v1/traces", request), ("/v1/logs", records)]
    for path, message in sent if is_span_first else sent[::-1]:
        telling.post(path, message.SerializeToString(), "application/x-protobuf")
    assert telling.series() == series_as_posted(posting)


@contextmanager
def library(caller: Caller, url: str, **options: Any) -> Iterator[Tracer]:
    """Let the library send to a server what a tracer's spans tell."""
    provider = TracerProvider(shutdown_on_exit=False, **options)
    send_with(OtelSending(Setup(ServerAddress(url, caller.key)), provider))
    yield provider.get_tracer("client")
    provider.force_flush()
    send_with(None)
    provider.shutdown()


def play(tracer: Tracer, words: str) -> bool:
    """Do what an instrumented client does in a run; return whether it was sampled."""
    shared, answer = CONVENTIONS["genai"]
    with failsoft.run(node=NODE):
        for word in words:
            told = answer(TEXTS[word])[0] if word in TEXTS else {}
            with tracer.start_as_current_span("chat", attributes={**shared, **told}) as span:
                if word not in TEXTS:
                    span.add_event(*TIMED_OUT)
                    span.set_status(Status(StatusCode.ERROR))
    return span.is_recording() or span.get_span_context().trace_flags.sampled


def test_the_library_gives_the_same_series(live_server: LiveServer) -> None:
    posting, telling = Caller(), Caller()
    post_events(posting)
    with library(telling, live_server.url) as tracer:
        for words in RUNS:
            play(tracer, words)
    told, posted = telling.series(), series_as_posted(posting)
    # The clock of this process says how long a call took, and its resource what it is.
    unlike = {"source", "environment"} | {name for name in posted if "latency" in name}
    same = {name: value for name, value in posted.items() if name not in unlike}
    assert {name: told[name] for name in same} == same


class SeededIds(RandomIdGenerator):
    """Ids that are the same in every test, since sampling decides by them."""

    def __init__(self) -> None:
        self._random = Random(10)

    def generate_trace_id(self) -> int:
        return self._random.getrandbits(128)

    def generate_span_id(self) -> int:
        return self._random.getrandbits(64)


def test_a_tenth_of_the_runs_is_whole_runs(live_server: LiveServer) -> None:
    """An SDK samples by trace: what comes of a run is all of it."""
    telling, words = Caller(), ["xg", "g", "bb", "xt"] * 40
    sampler = ParentBased(TraceIdRatioBased(0.1))
    with library(telling, live_server.url, sampler=sampler, id_generator=SeededIds()) as tracer:
        kept = [word for word in words if play(tracer, word)]
    series = telling.series()
    assert 5 < len(kept) < 40
    assert (series["runs"], series["degraded"]) == (len(kept), kept.count("bb") + kept.count("xt"))
    assert series["first_pass_rate"] == kept.count("g") / len(kept)
    runs = AgentRun.objects.filter(project=telling.project)
    assert sorted(runs.values_list("attempts", flat=True)) == sorted(map(len, kept))
