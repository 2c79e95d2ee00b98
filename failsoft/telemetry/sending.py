"""Send spans and log records by OpenTelemetry's SDK: with their run, without secrets.

1. A span gets the attributes of its run, and loses prompts, which the server does not read.
   Of a span that tells nothing of models only its name, place and times are sent.
2. The latest call of a run is held until the next one or the end of the run, so that its
   answer can still be told to be invalid.
3. Before a batch leaves, in the exporter's thread: schemas that are new are registered, and
   secrets are masked.
"""

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar, Token
from copy import copy
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

from opentelemetry import context, trace
from opentelemetry._logs import get_logger_provider, set_logger_provider
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import (
    BatchLogRecordProcessor,
    LogRecordExporter,
    LogRecordExportResult,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace.status import Status, StatusCode

from failsoft import VERSION
from failsoft.redaction import Redactor
from failsoft.telemetry.connection import NoServerError, ServerAddress
from failsoft.telemetry.exit import shut_down_at_exit
from failsoft.telemetry.runs import INVALID, LOG
from failsoft.telemetry.setup import Setup

RUN = context.create_key("failsoft.run")
PROMPT = re.compile(
    r"gen_ai\.(input\.|system_instructions|prompt(\.\d|$))|llm\.(input_messages|prompts)|input\."
    r"|ai\.(prompt|values?$)|(traceloop\.entity|haystack\.component)\.input|request_data"
    r"|langfuse\.(observation|trace)\.input|llm\.prompt_template\.(template|variables)"
    r"|gcp\.vertex\.agent\.(llm_request|tool_response|data)|reranker\."
    r"|mlflow\.spanInputs|pydantic_ai\.all_messages|braintrust\.(input|expected)|genkit:(input|init)"
    r"|gen_ai\.tool\.call\.result|tool_response|retrieval\.|embedding\."
)
# What tells of models; a span without any of it, of the web or a database, is sent bare.
OF_MODELS = re.compile(
    r"(gen_ai|llm|openinference|ai|langfuse|langsmith|mlflow|haystack|traceloop|failsoft)\."
    r"|anthropic\.|output\.|response_data|model_request_parameters"
)
PROMPT_EVENT = re.compile(r"gen_ai\.((user|system|tool)\.message|content\.prompt)")
MODEL = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name")
AROUND = ("invoke_agent", "invoke_workflow", "execute_tool", "embeddings")
# The errors of clients that could not read an answer.
UNREAD = tuple(error.__name__ for error in INVALID)
OPEN_SPANS = 10_000
BATCH = 128  # whole answers stay below the size limit of a request
# Set where a run is begun: it can be reset in that context only.
_BEGUN: ContextVar["HeldRun"] = ContextVar("failsoft.begun")
SCHEMA_TRIES = 5


class HeldRun:
    """An open run: the attributes of its spans, its own span, and its latest call."""

    def __init__(self, spans: "RunSpans", attributes: Mapping[str, str]) -> None:
        self.attributes = attributes
        self._spans = spans
        self._call: ReadableSpan | None = None
        self._marks: Mapping[str, str] = {}
        self._is_over = False
        self._lock = threading.Lock()
        self._span: trace.Span = trace.INVALID_SPAN
        self._token: Any = None
        self._here: Token[HeldRun] | None = None

    def start(self, tracer: trace.Tracer, node: str | None) -> "HeldRun":
        inside = context.set_value(RUN, self)
        names = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": node or "agent"}
        name = f"invoke_agent {node or 'agent'}"
        self._span = tracer.start_span(name, inside, attributes=names)
        self._token = context.attach(trace.set_span_in_context(self._span, inside))
        self._here = _BEGUN.set(self)
        return self

    def hold(self, span: ReadableSpan) -> None:
        """Hold a call, and let the one before go; a stream that outlives the run is not held."""
        with self._lock:
            before, self._call = (span, None) if self._is_over else (self._call, span)
            marks, self._marks = self._marks, {}
        self._let_go(before, marks)

    def mark(self, attributes: Mapping[str, str]) -> None:
        """Add attributes to the latest call, unless it failed before there was an answer."""
        if self._call is None:
            LOG.warning("failsoft: no call was seen in this run: is its client instrumented?")
        with self._lock:
            is_answered = self._call is not None and not _has_failed(self._call)
            self._marks = {**self._marks, **attributes} if is_answered else {}

    def end(self, error: BaseException | None) -> None:
        if self._here is not None:
            # Parts of a stream may be read in other threads and tasks: nothing is current there.
            with suppress(ValueError):
                _BEGUN.reset(self._here)
                context.detach(self._token)
        with self._lock:
            before, self._call, self._is_over = self._call, None, True
            marks, self._marks = self._marks, {}
        self._let_go(before, marks)
        if error is not None:
            self._span.set_status(Status(StatusCode.ERROR, type(error).__name__))
        self._span.end()

    def _let_go(self, span: ReadableSpan | None, marks: Mapping[str, str]) -> None:
        if span is not None:
            self._spans.forward(_changed(span, {**(span.attributes or {}), **marks}))


class RunSpans(SpanProcessor):
    """Tells spans which run they belong to, and forwards them."""

    def __init__(self, after: SpanProcessor) -> None:
        self._after = after
        # Of spans that have not ended; the oldest are given up.
        self._open: OrderedDict[int, HeldRun] = OrderedDict()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        run = context.get_value(RUN, parent_context)
        if isinstance(run, HeldRun) and span.context is not None:
            self._open[span.context.span_id] = run
            if len(self._open) > OPEN_SPANS:
                self._open.popitem(last=False)

    def on_end(self, span: ReadableSpan) -> None:
        """Forward a span; hold it if it is the latest call of its run."""
        run = self._open.pop(span.context.span_id, None) if span.context else None
        is_bare = not any(OF_MODELS.match(key) for key in span.attributes or {})
        kept = {} if is_bare else _without_prompts(span.attributes)
        events = [
            Event(event.name, _without_prompts(event.attributes), event.timestamp)
            for event in span.events
            if not (is_bare or PROMPT_EVENT.match(event.name))
        ]
        outgoing = _changed(span, {**(run.attributes if run else {}), **kept}, events)
        if run is not None and _is_call(kept):
            run.hold(outgoing)
        else:
            self.forward(outgoing)

    def forward(self, span: ReadableSpan) -> None:
        self._after.on_end(span)

    def shutdown(self) -> None:
        self._after.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._after.force_flush(timeout_millis)


class RunLogs(BatchLogRecordProcessor):
    """Tells log records which run they belong to."""

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        record = copy(log_record.log_record)  # the host's other processors have it as well
        if PROMPT_EVENT.match(record.event_name or ""):
            return
        run = context.get_value(RUN, record.context)
        own = run.attributes if isinstance(run, HeldRun) else {}
        record.attributes = {**own, **_without_prompts(record.attributes)}
        super().on_emit(replace(log_record, log_record=record))


class Preparing:
    def __init__(self, connection: ServerAddress, redactor: Redactor | None) -> None:
        self._connection = connection
        self._redactor = redactor
        self._schemas: dict[str, object] = {}
        self._waiting: dict[str, int] = {}
        # All spans of a process have one resource, or few.
        self.mask_resource = lru_cache(64)(self._mask_resource)

    @cached_property
    def _masking(self) -> Redactor:
        # Reading the packed rules takes a while: not in the host's thread.
        return self._redactor or Redactor(is_lasting=True)

    def add_schema(self, node: str, schema: object) -> None:
        """Register a schema with the next batch, unless it is registered."""
        if self._schemas.get(node) != schema:
            self._schemas[node] = schema
            self._waiting[node] = SCHEMA_TRIES

    def register_schemas(self) -> None:
        """Register what is new; what the server refuses is logged and not tried again."""
        for node, tries in list(self._waiting.items()):
            body = {"json_schema": self._schemas[node]}
            try:
                answer = self._connection.request("PUT", f"/api/v1/schemas/{node}", body)
                reason = "" if answer.status == 200 else f"is not registered: {answer.detail}"
                is_over = answer.status < 500
                if ignored := _unknown_keywords(answer.body):
                    reason = f"has keywords that check nothing: {ignored}"
            except NoServerError as error:
                reason, is_over = f"is not registered: {error}", False
            if is_over or tries <= 1:
                self._waiting.pop(node, None)
            else:
                self._waiting[node] = tries - 1
            if reason:
                LOG.warning("failsoft: the schema of %s %s", node, reason)

    def mask(self, value: Any) -> Any:  # noqa: ANN401 - any value of telemetry
        if isinstance(value, str):
            return self._masking.redact(value).text
        if isinstance(value, Mapping):
            return {key: self.mask(part) for key, part in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, bytes):
            return [self.mask(part) for part in value]
        return value

    def _mask_resource(self, resource: Resource) -> Resource:
        return Resource(self.mask(resource.attributes), resource.schema_url)


class MaskedSpans(SpanExporter):
    def __init__(self, exporter: SpanExporter, preparing: Preparing) -> None:
        self._exporter = exporter
        self._preparing = preparing

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._preparing.register_schemas()
        return self._exporter.export([self._masked(span) for span in spans])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def _masked(self, span: ReadableSpan) -> ReadableSpan:
        mask = self._preparing.mask
        events = [
            Event(event.name, mask(event.attributes or {}), event.timestamp)
            for event in span.events
        ]
        status = Status(span.status.status_code, mask(span.status.description))
        resource = self._preparing.mask_resource(span.resource)
        return _changed(
            span, mask(span.attributes or {}), events, status, mask(span.name), resource
        )


class MaskedLogs(LogRecordExporter):
    def __init__(self, exporter: LogRecordExporter, preparing: Preparing) -> None:
        self._exporter = exporter
        self._preparing = preparing

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        self._preparing.register_schemas()
        mask = self._preparing.mask
        for item in batch:
            item.log_record.body = mask(item.log_record.body)
            item.log_record.attributes = mask(item.log_record.attributes or {})
        mask_resource = self._preparing.mask_resource
        return self._exporter.export(
            [replace(item, resource=mask_resource(item.resource)) for item in batch]
        )

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call] # of OpenTelemetry


class OtelSending:
    def __init__(self, setup: Setup, provider: Any) -> None:  # noqa: ANN401 - the host's own
        self._setup = setup
        self._preparing = Preparing(setup.connection, setup.redactor)
        exporter = MaskedSpans(OTLPSpanExporter(**self._exporting("traces")), self._preparing)
        is_set = {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "OTEL_BSP_MAX_QUEUE_SIZE"} & set(os.environ)
        batch = BatchSpanProcessor(exporter, max_export_batch_size=None if is_set else BATCH)
        self._spans = RunSpans(batch)
        self._kept: list[BatchSpanProcessor | RunLogs] = [batch]
        provider.add_span_processor(self._spans)
        self._tracer = provider.get_tracer("failsoft", VERSION)
        shut_down_at_exit(self._spans)

    def begin(self, node: str | None, attributes: Mapping[str, str]) -> HeldRun:
        """Begin a run; inside another one it is a part of it."""
        outer = context.get_value(RUN)
        joined = {**(outer.attributes if isinstance(outer, HeldRun) else {}), **attributes}
        around = trace.get_current_span().get_span_context()
        if outer is None and around.is_valid:
            # The trace is the host's, and may have more runs than this one.
            place = f"{around.trace_id:032x}-{os.urandom(8).hex()}"
            joined.setdefault("failsoft.correlation_id", place)
        return HeldRun(self._spans, joined).start(self._tracer, node)

    def register(self, node: str, schema: object) -> None:
        self._preparing.add_schema(node, schema)

    def flush(self) -> None:
        for processor in self._kept:
            processor.force_flush()

    def send_logs(self) -> None:
        """Send log records as well: some instrumentations tell the answers there."""
        provider = get_logger_provider()
        if not hasattr(provider, "add_log_record_processor"):
            provider = LoggerProvider(Resource.create(self._setup.resource), shutdown_on_exit=False)
            set_logger_provider(provider)
        exporter = MaskedLogs(OTLPLogExporter(**self._exporting("logs")), self._preparing)
        processor = RunLogs(exporter)
        self._kept.append(processor)
        provider.add_log_record_processor(processor)
        shut_down_at_exit(processor)

    def _exporting(self, signal: str) -> dict[str, Any]:
        """Return the address, key and compression; everything else is OpenTelemetry's own."""
        connection = self._setup.connection
        is_set = "OTEL_EXPORTER_OTLP_COMPRESSION" in os.environ
        return {
            "endpoint": f"{connection.url}/v1/{signal}",
            "headers": connection.headers or None,
            "compression": None if is_set else Compression.Gzip,
        }


def send(setup: Setup) -> OtelSending:
    """Send what the host's provider of tracers gives, or set one up."""
    provider = trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        if not isinstance(provider, trace.ProxyTracerProvider):
            raise ValueError(f"{type(provider).__name__} takes no span processors")
        provider = TracerProvider(resource=Resource.create(setup.resource), shutdown_on_exit=False)
        trace.set_tracer_provider(provider)
    return OtelSending(setup, provider)


def _unknown_keywords(body: Any) -> str:  # noqa: ANN401 - any JSON
    """Return the keywords that the server ignores, without those that pydantic writes."""
    ignored = body.get("ignored", ()) if isinstance(body, Mapping) else ()
    return ", ".join(at for at in ignored if not at.endswith(("/format", "/discriminator")))


def _without_prompts(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    kept = attributes or {}
    # What a chain or a tool returns may be what it was asked.
    is_around = kept.get("openinference.span.kind", "LLM") != "LLM"
    return {
        key: value
        for key, value in kept.items()
        if not (PROMPT.match(key) or (is_around and key.startswith("output.")))
    }


def _is_call(attributes: Mapping[str, Any]) -> bool:
    """Whether these are the attributes of a call of a model, not of what is around it."""
    kind = attributes.get("openinference.span.kind", "LLM")
    operation = attributes.get("gen_ai.operation.name")
    return kind == "LLM" and operation not in AROUND and any(key in attributes for key in MODEL)


def _has_failed(span: ReadableSpan) -> bool:
    raised = (str((event.attributes or {}).get("exception.type")) for event in span.events)
    is_unread = any(name.endswith(UNREAD) for name in raised)
    return span.status.status_code is StatusCode.ERROR and not is_unread


def _changed(
    span: ReadableSpan,
    attributes: Mapping[str, Any],
    events: Sequence[Event] | None = None,
    status: Status | None = None,
    name: str | None = None,
    resource: Resource | None = None,
) -> ReadableSpan:
    return ReadableSpan(
        name or span.name,
        span.context,
        span.parent,
        resource or span.resource,
        attributes,
        span.events if events is None else events,
        (),
        span.kind,
        status=status or span.status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )
