"""OpenTelemetry's own SDK and exporters as the client of a real web process."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode, Tracer
from pytest_django.live_server_helper import LiveServer

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.api import otlp
from diagnostics.ingest.models import SpanVerdict
from diagnostics.ingest.receiving import receive_spans
from diagnostics.store.models import Event, EventPayload
from diagnostics.store.partitions import ensure_partitions

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "otel_agent.py"
RESOURCE = Resource({"service.name": "support-bot", "deployment.environment.name": "prod"})


@pytest.fixture
def project(transactional_db: None) -> Project:
    ensure_partitions()
    return Project.objects.create(slug="p", name="P")


@pytest.fixture
def headers(project: Project) -> dict[str, str]:
    key = issue_key(project, "agent", [Scope.INGEST]).text
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def exporter(live_server: LiveServer, headers: dict[str, str]) -> OTLPSpanExporter:
    return OTLPSpanExporter(
        endpoint=f"{live_server.url}/v1/traces", headers=headers, compression=Compression.Gzip
    )


@pytest.fixture
def tracer(exporter: OTLPSpanExporter) -> Iterator[Tracer]:
    """A tracer as an application sets it up; what is left goes out at its shutdown."""
    provider = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    yield provider.get_tracer("agent")
    provider.shutdown()


def flush(tracer: Tracer) -> None:
    assert tracer.span_processor.force_flush(10_000)  # type: ignore[attr-defined] # the SDK's


def call(tracer: Tracer, text: str = "{}", **more: Any) -> str:
    """Run an agent that calls a model once; gives the trace id."""
    message = {"role": "assistant", "parts": [{"type": "text", "content": text}]}
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5-mini",
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.output.messages": json.dumps([message]),
    }
    with (
        tracer.start_as_current_span("invoke_agent planner") as agent,
        tracer.start_as_current_span("chat gpt-5-mini", attributes=attributes) as span,
    ):
        span.set_attributes({name.replace("__", "."): v for name, v in more.items()})
    return f"{agent.get_span_context().trace_id:032x}"


def test_calls_of_a_plain_application_arrive_as_events(tracer: Tracer) -> None:
    traces = {call(tracer) for _ in range(20)}
    flush(tracer)
    events = Event.objects.all()
    assert {event.correlation_id for event in events} == traces
    assert {(e.model, e.source, e.environment) for e in events} == {
        ("gpt-5-mini", "support-bot", "prod")
    }


def test_parse_failures_show_without_a_line_of_code_once_a_schema_is_registered(
    tracer: Tracer, project: Project
) -> None:
    register_schema(project, "chat", {"type": "object", "required": ["steps"]}, "1")
    good = call(tracer, '{"steps": []}')
    bad = call(tracer, 'Sure!\n{"steps": [1, 2')
    flush(tracer)
    assert Event.objects.get(correlation_id=good).kind == "succeeded"
    event = Event.objects.get(correlation_id=bad)
    assert (event.kind, event.parse_error_type) == ("parse_invalid", "truncated")
    (error,) = EventPayload.objects.get(event_id=event.event_id).validation_errors
    assert (error["line"], error["column"]) == (2, 16)


def time_out(tracer: Tracer) -> None:
    with tracer.start_as_current_span("chat") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        raise TimeoutError("no answer")


def test_an_exception_of_the_client_is_an_error_of_the_provider(tracer: Tracer) -> None:
    with pytest.raises(TimeoutError):
        time_out(tracer)
    flush(tracer)
    event = Event.objects.get()
    assert (event.kind, event.call_error_type) == ("provider_error", "timeout")


def finished_spans() -> Sequence[ReadableSpan]:
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(memory))
    tracer = provider.get_tracer("agent")
    for _ in range(3):
        call(tracer)
    provider.shutdown()
    return memory.get_finished_spans()


def test_an_export_that_is_repeated_is_a_duplicate(exporter: OTLPSpanExporter) -> None:
    spans = finished_spans()
    assert exporter.export(spans) is SpanExportResult.SUCCESS
    # Batched otherwise, and one of them alone.
    assert exporter.export(spans[::-1]) is SpanExportResult.SUCCESS
    assert exporter.export(spans[:1]) is SpanExportResult.SUCCESS
    assert Event.objects.count() == 3


def test_an_exporter_comes_again_after_503_and_nothing_is_lost(
    exporter: OTLPSpanExporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    turns: Iterator[Callable[..., Any]] = iter([_fail, receive_spans])
    monkeypatch.setattr(otlp, "RETRY_SECONDS", "0")
    monkeypatch.setattr(otlp.TracesView, "receive", lambda _, *told: next(turns)(*told))
    with caplog.at_level(logging.WARNING, "opentelemetry"):
        assert exporter.export(finished_spans()) is SpanExportResult.SUCCESS
    assert "Transient error" in caplog.text
    assert Event.objects.count() == 3


def _fail(*_: object) -> None:
    raise OperationalError("the database is away")


def test_a_key_that_is_refused_is_final(live_server: LiveServer) -> None:
    exporter = OTLPSpanExporter(endpoint=f"{live_server.url}/v1/traces")
    assert exporter.export(finished_spans()) is SpanExportResult.FAILURE
    assert not Event.objects.exists()


def test_answers_that_only_log_records_tell_are_checked_too(
    live_server: LiveServer, headers: dict[str, str], tracer: Tracer, project: Project
) -> None:
    register_schema(project, "chat", {"type": "object", "required": ["steps"]}, "1")
    exporter = OTLPLogExporter(endpoint=f"{live_server.url}/v1/logs", headers=headers)
    provider = LoggerProvider(resource=RESOURCE, shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5-mini"}
    with tracer.start_as_current_span("chat", attributes=attributes):
        body: dict[str, Any] = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"content": "no plan"},
        }
        provider.get_logger("agent").emit(LogRecord(event_name="gen_ai.choice", body=body))
    assert SpanVerdict.objects.count() == 1
    flush(tracer)
    provider.shutdown()
    event = Event.objects.get()
    assert (event.parse_error_type, event.model) == ("not_json", "gpt-5-mini")


def test_spans_as_openinference_writes_them_arrive_too(tracer: Tracer) -> None:
    attributes: dict[str, Any] = {
        "openinference.span.kind": "LLM",
        "llm.system": "anthropic",
        "llm.model_name": "claude-haiku-4",
        "llm.token_count.prompt": 11,
        "llm.token_count.completion": 7,
        "llm.invocation_parameters": '{"max_tokens": 64}',
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "{}",
        "output.value": '{"id": "msg_1"}',
        "output.mime_type": "application/json",
    }
    with tracer.start_as_current_span("Messages", attributes=attributes) as span:
        span.set_status(Status(StatusCode.OK))
    flush(tracer)
    event = Event.objects.get()
    assert (event.provider, event.model) == ("anthropic", "claude-haiku-4")
    assert (event.input_tokens, event.output_tokens) == (11, 7)


def test_the_example_shows_a_failed_attempt_and_a_repaired_one(
    live_server: LiveServer, project: Project
) -> None:
    key = issue_key(project, "example", [Scope.INGEST]).text
    env = {**os.environ, "FAILSOFT_URL": live_server.url, "FAILSOFT_API_KEY": key}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    bad, good = Event.objects.order_by("attempt")
    assert (bad.node, bad.parse_error_type) == ("otel_planner", "schema_invalid")
    assert (good.kind, good.attempt, good.schema_version) == ("succeeded", 2, "1")
    assert bad.correlation_id in done.stdout
    (error,) = EventPayload.objects.get(event_id=bad.event_id).validation_errors
    assert (error["path"], error["line"], error["column"]) == ("/steps/1/tool", 2, 41)
