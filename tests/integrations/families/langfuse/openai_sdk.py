"""Langfuse's drop-in of the OpenAI SDK; its spans go to OpenTelemetry's own exporter."""

import openai_calls
from cell import Cell, serve, set_up
from langfuse import Langfuse
from langfuse.openai import OpenAI
from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

flush = set_up()
langfuse = Langfuse(
    public_key="pk-lf-scripted",
    secret_key="sk-lf-scripted",
    base_url="http://127.0.0.1:9",
    tracer_provider=trace.get_tracer_provider(),
    span_exporter=InMemorySpanExporter(),
)


def ask(cell: Cell) -> None:
    """Play a cell."""
    openai_calls.ask(cell, OpenAI)


serve(ask, flush)
