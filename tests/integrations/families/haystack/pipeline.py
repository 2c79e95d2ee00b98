"""A pipeline of Haystack, told by its own tracer or by OpenInference."""

import os

from cell import MODEL, USER, Cell, ask_until_plan, serve, set_up
from haystack import Pipeline, tracing
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from haystack.utils import Secret
from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer
from openinference.instrumentation.haystack import HaystackInstrumentor
from opentelemetry import trace
from schema import PLAN

flush = set_up()
if os.environ["BY"] == "haystack":
    tracing.tracer.is_content_tracing_enabled = True
    tracing.enable_tracing(OpenTelemetryTracer(trace.get_tracer("planner")))
else:
    HaystackInstrumentor().instrument()


def ask(cell: Cell) -> None:
    """Play a cell."""
    tool = Tool("Plan", "Plan.", PLAN, function=dict)
    generator = OpenAIChatGenerator(
        model=MODEL,
        api_base_url=f"{cell.url}/v1",
        api_key=Secret.from_token("scripted"),
        max_retries=0,
        timeout=cell.timeout,
        tools=[tool] if cell.tools else None,
        streaming_callback=(lambda _chunk: None) if cell.stream else None,
    )
    pipeline = Pipeline()
    pipeline.add_component("planner", generator)

    def call() -> str | None:
        told = pipeline.run({"planner": {"messages": [ChatMessage.from_user(USER)]}})
        return told["planner"]["replies"][0].text

    ask_until_plan(cell, call)


serve(ask, flush)
