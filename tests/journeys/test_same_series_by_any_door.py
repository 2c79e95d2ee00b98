"""The same 14 runs are the same series, by whatever door and in whatever convention they come."""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from django.db import connection
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
from diagnostics.ingest.log_answers import PATIENCE, settle_verdicts
from diagnostics.ingest.models import SpanVerdict
from diagnostics.ingest.span_runs import settle_runs
from diagnostics.store.aggregation import fold
from diagnostics.store.models import Event
from diagnostics.store.partitions import ensure_partitions
from diagnostics.store.run_models import AgentRun
from failsoft.events import EventKind
from failsoft.parsing.makers import ending_of
from failsoft.telemetry.connection import ServerAddress
from failsoft.telemetry.runs import send_with
from failsoft.telemetry.sending import OtelSending
from failsoft.telemetry.setup import Setup
from tests.diagnostics import otlp_bodies as bodies
from tests.diagnostics.builders import degraded, succeeded, wire_event

pytestmark = pytest.mark.django_db(transaction=True)


class Answered(NamedTuple):
    """What a call was answered with, and what that is: a kind of event and of error."""

    kind: EventKind
    error: str | None = None
    text: str | None = None
    reason: str = "stop"
    exception: dict[str, str] = {}
    provider: str = "openai"
    model: str = "gpt-5-mini"


INVALID, FAILED = EventKind.PARSE_INVALID, EventKind.PROVIDER_ERROR
WORDS = {
    "g": Answered(EventKind.SUCCEEDED, text='{"steps": []}'),
    # Another provider, asked in place of the one that failed.
    "f": Answered(
        EventKind.SUCCEEDED, text='{"steps": []}', provider="anthropic", model="claude-haiku-4"
    ),
    "x": Answered(INVALID, "not_json", "Sure! First"),
    "b": Answered(INVALID, "schema_invalid", '{"steps": 1}'),
    "e": Answered(INVALID, "empty_output", ""),
    "l": Answered(INVALID, "truncated", '{"steps": [', "length"),
    "r": Answered(INVALID, "refusal", "I cannot help with that.", "content_filter"),
    "t": Answered(FAILED, "timeout", exception={"exception.type": "openai.APITimeoutError"}),
    "q": Answered(
        FAILED,
        "rate_limited",
        exception={
            "exception.type": "openai.RateLimitError",
            "exception.message": "Error code: 429 - slow down",
        },
    ),
    # Closed by whoever asked, before the answer was whole.
    "c": Answered(EventKind.CANCELLED, exception={"exception.type": "asyncio.CancelledError"}),
}
RUNS = (*("g", "g", "g", "g", "xg", "bxg", "tg", "elg", "qf"), *("xxx", "rr", "xt", "l", "c"))
SCHEMA: dict[str, Any] = {
    "title": "Plan",
    "type": "object",
    "required": ["steps"],
    "properties": {"steps": {"type": "array"}},
}
NODE = "planner"
# When it was judged; how the waits before attempts and what they cost were told.
LEFT_OUT = {"judged_at", "retry_seconds", "retry_tokens"}
IDS = {"project_id", "series_id"}
ROLLUPS = """
SELECT series.environment, series.node, series.provider, series.model, hour.*
  FROM diagnostics_rollup_hour AS hour JOIN diagnostics_series AS series ON series.id = series_id
 WHERE hour.project_id = %s ORDER BY bucket, series.provider
"""
SAME_OF_EVENTS = (
    *("kind", "node", "cycle", "attempt", "attempts", "reason", "provider", "model"),
    *("parse_error_type", "call_error_type", "source", "environment"),
    *("latency_ms", "input_tokens", "output_tokens"),
)


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
        items = Client().get("/api/v1/series", headers=headers).json()["items"]
        return {
            series["model"]: {name: series[name] for name in series if name not in LEFT_OUT}
            for series in items
        }

    def counts(self) -> list[dict[str, Any]]:
        """Return what each series counts in its hours, without what is nothing."""
        with connection.cursor() as cursor:
            cursor.execute(ROLLUPS, [self.project.pk])
            names = [column.name for column in cursor.description]
            rows = cursor.fetchall()
        return [
            {
                name: value
                for name, value in zip(names, row, strict=True)
                if name not in IDS and value
            }
            for row in rows
        ]

    def outcomes(self) -> list[tuple[str, int, int]]:
        runs = AgentRun.objects.filter(project=self.project)
        return sorted(runs.values_list("outcome", "attempts", "calls"))

    def calls(self) -> list[tuple[Any, ...]]:
        """Return what is stored of each call and end of a run; spellings of an ending are one."""
        events = Event.objects.filter(project=self.project)
        rows = events.values_list("finish_reason", *SAME_OF_EVENTS)
        return sorted(((ending_of(reason), *told) for reason, *told in rows), key=repr)


class Call(NamedTuple):
    """A call of a run: its place, what it was answered with, and when it ended."""

    run: str
    attempt: int
    word: str
    at: datetime

    @property
    def answered(self) -> Answered:
        return WORDS[self.word]


def calls(word_of_run: str) -> list[Call]:
    """Return the calls of one run, some seconds apart."""
    run, begin = uuid4().hex, clock.now() - timedelta(minutes=5)
    moments = (begin + timedelta(seconds=3 * place) for place in range(len(word_of_run)))
    return [Call(run, *told) for told in zip(range(1, 9), word_of_run, moments, strict=False)]


COMMON = {"source": "bot", "environment": "prod"}
MEASURED = {"latency_ms": 1000}
USED = {"input_tokens": 31, "output_tokens": 17}
REASONS = {FAILED: "provider_failed", INVALID: f"{NODE}_parse_failed"}


def common_of(call: Call) -> dict[str, Any]:
    named = {"provider": call.answered.provider, "model": call.answered.model}
    return {**COMMON, **named, "correlation_id": call.run, "occurred_at": call.at.isoformat()}


def events_of(word_of_run: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a run as an agent posts them that judges its answers itself."""
    for call in calls(word_of_run):
        kind, error, text, reason, *_ = call.answered
        shared = common_of(call)
        told = {**shared, **MEASURED, "attempt": call.attempt, "event_id": str(uuid4())}
        told["name"] = f"graph.{NODE}.{kind}"
        if text is not None:
            told |= {**USED, "finish_reason": reason}
        if kind is INVALID:
            yield wire_event(**told, parse_error_type=error)
        else:
            cause = {"attributes": {"call_error_type": error}} if kind is FAILED else {}
            yield succeeded(**told, **cause)
    if kind in REASONS:
        reason = "timeout" if error == "timeout" else REASONS[kind]
        ending = {"attempts": call.attempt, "reason": reason}
        yield degraded(**shared, **ending, name=f"graph.{NODE}.degraded")


def answers_of(word_of_run: str) -> Iterator[dict[str, Any]]:
    """Yield the answers of a run as the model gave them."""
    for call in calls(word_of_run):
        _, _, text, reason, exception, *_ = call.answered
        told = {**common_of(call), **MEASURED, "name": "answered", "node": NODE}
        if text is None:
            yield told | {"error": exception["exception.type"]}
        else:
            yield told | {**USED, "text": text, "finish_reason": reason}


def post_events(caller: Caller) -> None:
    items = [item for run in RUNS for item in events_of(run)]
    caller.post("/api/v1/events", json.dumps(items))


def post_lines(caller: Caller) -> None:
    lines = [json.dumps(item) for run in RUNS for item in events_of(run)]
    caller.post("/api/v1/events", "\n".join(lines), "application/x-ndjson")


def post_answers(caller: Caller) -> None:
    items = [item for run in RUNS for item in answers_of(run)]
    caller.post("/api/v1/events", json.dumps(items))


Told = dict[str, Any]
GENAI = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "{provider}",
    "gen_ai.request.model": "{model}",
}
GENAI_TOKENS = {"gen_ai.usage.input_tokens": 31, "gen_ai.usage.output_tokens": 17}


def genai_used(reason: str) -> Told:
    return {**GENAI_TOKENS, "gen_ai.response.finish_reasons": [reason]}


def messages(text: str, **more: str) -> list[Told]:
    return [{"role": "assistant", "parts": [{"type": "text", "content": text}], **more}]


# Of each convention: what it says of any call, what of an answer, and its event on the span.
CONVENTIONS: dict[str, tuple[Told, Callable[[str, str], Told]]] = {
    "genai": (GENAI, lambda text, reason: {
        **genai_used(reason), "gen_ai.output.messages": json.dumps(messages(text))}),
    "genai, structured": (GENAI, lambda text, reason: {
        **genai_used(reason), "gen_ai.output.messages": messages(text)}),
    "genai, reason in the message": (GENAI, lambda text, reason: {
        **GENAI_TOKENS,
        "gen_ai.output.messages": json.dumps(messages(text, finish_reason=reason))}),
    "genai, event": (GENAI, lambda text, reason: {
        **genai_used(reason), "gen_ai.choice": {
            "gen_ai.event.content": json.dumps({"index": 0, "message": {"content": text}})}}),
    "genai, event of details": (GENAI, lambda text, reason: {
        **GENAI_TOKENS, "gen_ai.client.inference.operation.details": {
            "gen_ai.output.messages": json.dumps(messages(text, finish_reason=reason))}}),
    "strands": (GENAI, lambda text, reason: {
        **GENAI_TOKENS, "gen_ai.choice": {
            "finish_reason": reason, "message": json.dumps([{"text": text}])}}),
    "semantic kernel": (
        {"gen_ai.operation.name": "chat.completions", "gen_ai.system": "{provider}",
         "gen_ai.request.model": "{model}"},
        lambda text, reason: {
            **GENAI_TOKENS,
            "gen_ai.response.finish_reason": f"FinishReason.{reason.upper()}",
            "gen_ai.content.completion": {"gen_ai.completion": json.dumps(
                [{"role": "assistant", "content": text}])}}),
    "openinference": (
        {"openinference.span.kind": "LLM", "llm.provider": "{provider}",
         "llm.model_name": "{model}"},
        lambda text, reason: {
            "llm.output_messages.0.message.content": text, "llm.finish_reason": reason,
            "llm.token_count.prompt": 31, "llm.token_count.completion": 17}),
    "openinference, whole reply": (
        {"openinference.span.kind": "LLM", "llm.provider": "{provider}",
         "llm.model_name": "{model}"},
        lambda text, reason: {
            "output.mime_type": "application/json", "output.value": json.dumps({"choices": [
                {"message": {"role": "assistant", "content": text}, "finish_reason": reason}]}),
            "llm.token_count.prompt": 31, "llm.token_count.completion": 17}),
    "traceloop": (
        {"gen_ai.system": "{provider}", "gen_ai.request.model": "{model}",
         "llm.request.type": "chat"},
        lambda text, reason: {
            "gen_ai.completion.0.content": text, "gen_ai.completion.0.finish_reason": reason,
            "gen_ai.usage.prompt_tokens": 31, "gen_ai.usage.completion_tokens": 17}),
    "vercel": (
        {"ai.operationId": "ai.generateText.doGenerate", "ai.model.id": "{model}",
         "ai.model.provider": "{provider}.responses"},
        lambda text, reason: {
            "ai.response.text": text, "ai.response.finishReason": reason.replace("_", "-"),
            "ai.usage.inputTokens": 31, "ai.usage.outputTokens": 17}),
    "vercel, object": (
        {"ai.operationId": "ai.generateObject.doGenerate", "ai.model.id": "{model}",
         "ai.model.provider": "{provider}.chat"},
        lambda text, reason: {
            "ai.response.object": text, "ai.response.finishReason": reason.replace("_", "-"),
            "ai.usage.inputTokens": 31, "ai.usage.outputTokens": 17}),
    "langsmith": (
        {"langsmith.span.kind": "llm", "langsmith.metadata.ls_provider": "{provider}",
         "langsmith.metadata.ls_model_name": "{model}"},
        lambda text, reason: {**genai_used(reason), "gen_ai.completion": json.dumps(
            {"generations": [[{"text": text}]]})}),
    "logfire": (GENAI, lambda text, reason: {
        "gen_ai.response.finish_reasons": [reason],
        "response_data": json.dumps({
            "message": {"role": "assistant", "content": text},
            "usage": {"prompt_tokens": 31, "completion_tokens": 17}})}),
    "mlflow": (
        {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.llm.model": '"{model}"',
         "mlflow.llm.provider": '"{provider}"'},
        lambda text, reason: {
            "mlflow.chat.tokenUsage": json.dumps({"input_tokens": 31, "output_tokens": 17}),
            "mlflow.spanOutputs": json.dumps(
                {"choices": [{"message": {"content": text}, "finish_reason": reason}]})}),
    "langfuse": (
        {"langfuse.observation.type": "generation", "gen_ai.system": "{provider}",
         "langfuse.observation.model.name": "{model}"},
        lambda text, reason: {
            "langfuse.observation.output": json.dumps({"role": "assistant", "content": text}),
            "langfuse.observation.metadata.finish_reason": reason,
            "langfuse.observation.usage_details": json.dumps({"input": 31, "output": 17})}),
    # Its components name no provider of their own.
    "haystack": (
        {"haystack.component.type": "OpenAIChatGenerator", "gen_ai.provider.name": "{provider}",
         "gen_ai.request.model": "{model}"},
        lambda text, reason: {"haystack.component.output": json.dumps({"replies": [
            {"role": "assistant", "content": [{"text": text}], "meta": {
                "finish_reason": reason,
                "usage": {"prompt_tokens": 31, "completion_tokens": 17}}}]})}),
}  # fmt: skip
RESOURCE = {"service.name": "bot", "deployment.environment.name": "prod", "failsoft.node": NODE}


def told_by(convention: str, answered: Answered) -> tuple[Told, list[tuple[str, Told]]]:
    """Return the attributes and the events of a span."""
    shared, answer = CONVENTIONS[convention]
    if answered.text is None:
        told, events = {}, [("exception", dict(answered.exception))]
    else:
        told = answer(answered.text, answered.reason)
        events = [(name, told.pop(name)) for name in list(told) if isinstance(told[name], dict)]
    names = {"provider": answered.provider, "model": answered.model}
    filled = {key: value.format(**names) for key, value in shared.items()}
    return {**filled, **told}, events


def span_of(call: Call, convention: str) -> Span:
    attributes, events = told_by(convention, call.answered)
    end_ns = int(call.at.timestamp() * 1e6) * 1000
    packed = bodies.span(
        trace_id=call.run,
        span_id=f"{call.attempt:016x}",
        start_ns=end_ns - 10**9,
        end_time_unix_nano=end_ns,
        is_error=call.answered.text is None,
        events=events,
    )
    del packed.attributes[:]
    packed.attributes.extend(bodies.key_values(attributes))
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
    assert_same(other, posting)


def assert_same(other: Caller, posting: Caller) -> None:
    assert other.series() == series_as_posted(posting)
    assert other.counts() == posting.counts()
    assert other.outcomes() == posting.outcomes()
    assert other.calls() == posting.calls()


def series_as_posted(caller: Caller) -> dict[str, Any]:
    series = caller.series()
    main, fallback = (series[WORDS[word].model] for word in "gf")
    assert (main["runs"], main["degraded"], fallback["runs"], fallback["degraded"]) == (12, 4, 1, 0)
    assert main["first_pass_rate"] == 4 / 13
    outcomes = Counter(outcome for outcome, _, _ in caller.outcomes())
    assert outcomes == {"ok_first": 4, "recovered": 5, "degraded": 4, "cancelled": 1}
    return series


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_spans_of_any_convention_give_the_same_series(convention: str) -> None:
    posting, packed, written = Caller(), Caller(), Caller()
    post_events(posting)
    request = request_of([span_of(call, convention) for run in RUNS for call in calls(run)])
    packed.post("/v1/traces", request.SerializeToString(), "application/x-protobuf")
    written.post("/v1/traces", bodies.as_json(request))
    assert_same(packed, posting)
    assert_same(written, posting)


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
    assert_same(telling, posting)


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
                {"index": 0, "message": {"content": call.answered.text}},
                call.run,
                f"{call.attempt:016x}",
            )
            for call in told
            if call.answered.text is not None
        ),
        resource=RESOURCE,
    )
    sent = [("/v1/traces", request), ("/v1/logs", records)]
    for path, message in sent if is_span_first else sent[::-1]:
        telling.post(path, message.SerializeToString(), "application/x-protobuf")
    assert_same(telling, posting)


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
    with failsoft.run(node=NODE):
        for word in words:
            told, events = told_by("genai", WORDS[word])
            with tracer.start_as_current_span("chat", attributes=told) as span:
                for event in events:
                    span.add_event(*event)
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
    for model, series in posted.items():
        unlike = {"source", "environment"} | {name for name in series if "latency" in name}
        same = {name: value for name, value in series.items() if name not in unlike}
        assert {name: told[model][name] for name in same} == same
    assert telling.outcomes() == posting.outcomes()


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
    (series,) = telling.series().values()
    assert 5 < len(kept) < 40
    assert (series["runs"], series["degraded"]) == (len(kept), kept.count("bb") + kept.count("xt"))
    assert series["first_pass_rate"] == kept.count("g") / len(kept)
    runs = AgentRun.objects.filter(project=telling.project)
    assert sorted(runs.values_list("attempts", flat=True)) == sorted(map(len, kept))
