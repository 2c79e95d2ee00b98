"""What every scripted client shares: a cell comes in by line, its telemetry goes out before the
next one. Runs in the environment of a family; knows nothing but OpenTelemetry's SDK."""

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

MODEL = "scripted-1"
PROMPT_VERSION = "planner-v5"
SYSTEM, USER = "Plan in JSON.", "A customer wants a refund."
MESSAGES = [{"role": "user", "content": USER}]
# Of the cell without an answer; in any other one a slow machine must not look like it.
TIMEOUT_SECONDS, PATIENT_SECONDS = 0.8, 30.0


@dataclass(frozen=True)
class Cell:
    """One cell: where the provider is, how often to ask and how."""

    name: str
    url: str
    calls: int = 1
    stream: bool = False
    tools: bool = False

    @property
    def timeout(self) -> float:
        """How long to wait for an answer."""
        return TIMEOUT_SECONDS if self.name == "timeout" else PATIENT_SECONDS


def set_up() -> Callable[[], object]:
    """Export spans and log records as the environment says; returns what sends them now."""
    tracers, loggers = TracerProvider(), LoggerProvider()
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    trace.set_tracer_provider(tracers)
    set_logger_provider(loggers)
    providers = [loggers, tracers]
    if os.environ.get("SPANS_FIRST"):
        providers.reverse()
    return lambda: [provider.force_flush() for provider in providers]


def serve(ask: Callable[[Cell], object], flush: Callable[[], object]) -> None:
    """Play every cell of standard input; what the client raises is part of the play."""
    for line in sys.stdin:
        cell = Cell(**json.loads(line))
        raised = None
        try:
            ask(cell)
        except Exception as error:  # noqa: BLE001 - whatever the client raises
            raised = f"{type(error).__name__}: {error}"[:300]
        flush()
        print(json.dumps({"cell": cell.name, "raised": raised}), flush=True)  # noqa: T201


def ask_until_plan(cell: Cell, call: Callable[[], str | None]) -> None:
    """Ask as an agent of one's own does: in one trace, until the answer is a plan."""
    with trace.get_tracer("agent").start_as_current_span("agent"):
        for _ in range(cell.calls):
            with suppress(ValueError, KeyError, TypeError, IndexError):
                plan: Any = json.loads(call() or "")
                if isinstance(plan["steps"][0]["tool"], str):
                    return
