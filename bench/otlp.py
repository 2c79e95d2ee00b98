"""What a span costs beside the same event posted as JSON: 512 calls of a model a batch.

    python -m bench.otlp [--quick] [--rounds 7]

Every way goes through the whole stack of a request, in process, in turns, against one durable
PostgreSQL; CPU time of this process and of the server's backend, medians of the rounds.
"""

# ruff: noqa: T201 - a benchmark prints
import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import connection
from django.test import Client

from bench.database import running_database, server_cpu_seconds
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.models import Quota
from failsoft.json_values import JSON as JSON_VALUE
from tests.diagnostics import otlp_bodies
from tests.diagnostics.builders import succeeded

SPANS = 512
EVENTS = "/api/v1/events"
PROTOBUF, JSON = "application/x-protobuf", "application/json"
# 1.2 KB, as a plan of a few steps is.
STEP = {"id": "step", "tool": "search", "args": {"query": "weather in Oslo tomorrow"}}
ANSWER = json.dumps({"steps": [STEP] * 14})
SCHEMA: JSON_VALUE = {
    "type": "object",
    "required": ["steps"],
    "properties": {
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "tool"],
                "properties": {"id": {"type": "string"}, "args": {"type": "object"}},
            },
        }
    },
}


@dataclass
class Way:
    """One way to send a batch."""

    name: str
    path: str
    kind: str
    make: Callable[[], bytes]
    costs: list[float] = field(default_factory=list)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    rounds = 1 if asked.quick else asked.rounds
    settings.ALLOWED_HOSTS = ["testserver"]
    with running_database():
        project = Project.objects.create(slug="bench", name="Bench")
        lift_limits(project)
        register_schema(project, "checked", SCHEMA, "1")
        ways = list(list_ways())
        send = Sender(project)
        # The first turn warms up caches and plans.
        for turn in range(rounds + 1):
            for way in ways:
                cost = send(way)
                if turn:
                    way.costs.append(cost)
    report(ways)


def lift_limits(project: Project) -> None:
    """Let the project send what it likes."""
    limits = [item.name for item in Quota._meta.fields if "events" in item.name]
    Quota.objects.create(project=project, **dict.fromkeys(limits, 0))


def list_ways() -> Iterator[Way]:
    """List the ways, the plain one first."""
    yield Way("events as JSON", EVENTS, JSON, make_events)
    yield Way("spans, protobuf", "/v1/traces", PROTOBUF, make_packed)
    yield Way("spans, JSON", "/v1/traces", JSON, make_written)
    yield Way("spans with answers", "/v1/traces", PROTOBUF, make_answered)
    yield Way("spans, answers checked", "/v1/traces", PROTOBUF, make_checked)


def make_events() -> bytes:
    """Give the same calls as events."""
    shared = {"input_tokens": 911, "output_tokens": 512, "latency_ms": 1840}
    told = {"source": "support-bot", "environment": "prod", "finish_reason": "stop"}
    events = [
        succeeded(
            name="graph.chat.succeeded",
            correlation_id=uuid4().hex,
            occurred_at=datetime.now(UTC).isoformat(),
            **shared,
            **told,
        )
        for _ in range(SPANS)
    ]
    return json.dumps(events).encode()


def make_request(**attributes: Any) -> Any:  # noqa: ANN401 - attributes, a message
    """Give an export request of spans that nobody has seen, and that are not late."""
    ids = ((uuid4().hex, uuid4().hex[:16]) for _ in range(SPANS))
    start_ns = time.time_ns() - 2 * 10**9
    return otlp_bodies.traces(
        *(
            otlp_bodies.span(attributes, trace_id=trace_id, span_id=span_id, start_ns=start_ns)
            for trace_id, span_id in ids
        )
    )


def make_packed() -> bytes:
    """Give spans in protobuf."""
    packed: bytes = make_request().SerializeToString()
    return packed


def make_written() -> bytes:
    """Give spans in OTLP's JSON."""
    return otlp_bodies.as_json(make_request())


def make_answered(node: str = "unchecked") -> bytes:
    """Give spans that carry the text of their answers."""
    part = {"type": "text", "content": ANSWER}
    messages = json.dumps([{"role": "assistant", "parts": [part]}])
    told = {"gen_ai.output.messages": messages, "failsoft.node": node}
    packed: bytes = make_request(**told).SerializeToString()
    return packed


def make_checked() -> bytes:
    """Give such spans of a node that has a schema."""
    return make_answered("checked")


class Sender:
    """Sends one batch and gives its CPU microseconds a call."""

    def __init__(self, project: Project) -> None:
        """Make a key, and find the backend that serves this process."""
        key = issue_key(project, "bench", [Scope.INGEST]).text
        self._headers = {"Authorization": f"Bearer {key}"}
        self._client = Client()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            self._backend: int = cursor.fetchone()[0]

    def __call__(self, way: Way) -> float:
        """Send; whatever is not stored whole is an error."""
        body = way.make()
        before = self._spent()
        answer = self._client.post(way.path, body, content_type=way.kind, headers=self._headers)
        cost = self._spent() - before
        is_whole = way.path == EVENTS or answer.content in (b"", b"{}")
        if answer.status_code != 200 or not is_whole:
            raise RuntimeError(f"{way.name}: {answer.status_code} {answer.text[:200]}")
        return cost / SPANS * 1e6

    def _spent(self) -> float:
        return time.process_time() + server_cpu_seconds([self._backend])


def report(ways: list[Way]) -> None:
    """Print a row a way, and what a span costs beside an event."""
    medians = {way.name: statistics.median(way.costs) for way in ways}
    print(f"{SPANS} calls a batch, CPU us a call (process and backend), median of rounds")
    for name, cost in medians.items():
        print(f"{name:24} {cost:8.1f}")
    floor = medians[ways[0].name]
    for name in list(medians)[1:]:
        print(f"{name} over events as JSON: {medians[name] / floor:.2f}x")


if __name__ == "__main__":
    main()
