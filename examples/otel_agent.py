"""An agent that knows OpenTelemetry and nothing of Failsoft.

It calls a model (a pretended one), writes the spans of the GenAI conventions, and exports
them over OTLP. Once a schema is registered for its node, answers that break it show up as
parse failures.

    pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http
    python3 examples/otel_agent.py

The running local stack is found; FAILSOFT_URL and FAILSOFT_API_KEY name another
installation.
"""

import json
import urllib.request

from failsoft_client import find_installation
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

URL, KEY = find_installation()
NODE = "otel_planner"
SCHEMA = {
    "title": "Plan",
    "type": "object",
    "required": ["steps"],
    "properties": {
        "steps": {"type": "array", "items": {"type": "object", "required": ["id", "tool"]}}
    },
}
# What the model answers, one attempt after the other.
ANSWERS = (
    'Sure! Here is the plan:\n{"steps": [{"id": 1, "tool": "search"}, {"id": 2}]}',
    '{"steps": [{"id": 1, "tool": "search"}, {"id": 2, "tool": "answer"}]}',
)


def headers() -> dict[str, str]:
    """Give the header that says who sends: the exporter sends it with every batch."""
    return {"Authorization": f"Bearer {KEY}"}


def register_schema() -> None:
    """Tell what answers of the node must look like; the same again changes nothing."""
    request = urllib.request.Request(  # noqa: S310 - the address is the user's own
        f"{URL}/api/v1/schemas/{NODE}",
        json.dumps({"json_schema": SCHEMA}).encode(),
        {"Content-Type": "application/json", **headers()},
        method="PUT",
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
        print("schema version", json.load(answer)["version"])  # noqa: T201


def make_provider() -> TracerProvider:
    """Set OpenTelemetry up as any application does."""
    resource = Resource.create(
        {
            "service.name": "otel-agent",
            "service.version": "1.0",
            "deployment.environment.name": "dev",
        }
    )
    provider = TracerProvider(resource=resource)
    exporter = OTLPSpanExporter(
        endpoint=f"{URL}/v1/traces", headers=headers(), compression=Compression.Gzip, timeout=60
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def plan(tracer: trace.Tracer) -> str:
    """Ask the model until its plan is whole; returns the trace id."""
    with tracer.start_as_current_span("invoke_agent planner") as agent:
        for attempt, answer in enumerate(ANSWERS, 1):
            with tracer.start_as_current_span("chat tiny-model") as span:
                message = {
                    "role": "assistant",
                    "parts": [{"type": "text", "content": answer}],
                    "finish_reason": "stop",
                }
                span.set_attributes(
                    {
                        "gen_ai.operation.name": "chat",
                        "gen_ai.provider.name": "example",
                        "gen_ai.request.model": "tiny-model",
                        "gen_ai.usage.input_tokens": 40,
                        "gen_ai.usage.output_tokens": 25,
                        "gen_ai.response.finish_reasons": ("stop",),
                        "gen_ai.output.messages": json.dumps([message]),
                        # The two things the conventions have no name for.
                        "failsoft.node": NODE,
                        "failsoft.attempt": attempt,
                    }
                )
    return f"{agent.get_span_context().trace_id:032x}"


def main() -> None:
    """Register, plan once, send what is left."""
    register_schema()
    provider = make_provider()
    trace_id = plan(provider.get_tracer("otel-agent"))
    provider.shutdown()
    print(f"{URL}/api/v1/events?correlation_id={trace_id}")  # noqa: T201


if __name__ == "__main__":
    main()
