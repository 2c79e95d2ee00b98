"""What other people's clients send about a call that failed becomes the event that is true."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.log_answers import PATIENCE, settle_verdicts
from diagnostics.ingest.models import SpanVerdict
from diagnostics.ingest.span_runs import settle_runs
from diagnostics.store.models import Event, EventPayload, Series
from diagnostics.store.run_models import AgentRun
from failsoft.events import EventKind

pytestmark = pytest.mark.django_db
BOOK = tomllib.loads(Path(__file__).with_name("kinds_of_fault.toml").read_text())
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["goal"],
    "properties": {"goal": {"type": "string"}},
}
SECOND_NS = 1_000_000_000


def packed(value: Any) -> dict[str, Any]:
    """Return a value of OTLP/JSON; `$good` stands for a text of the book."""
    if isinstance(value, list):
        return {"arrayValue": {"values": [packed(item) for item in value]}}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": BOOK[value[1:]] if value.startswith("$") else value}


def key_values(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": packed(value)} for key, value in attributes.items()]


def hexadecimal(name: str, length: int) -> str:
    return name.encode().hex().ljust(length, "0")[:length]


def otlp_span(index: int, span: dict[str, Any], base: int) -> dict[str, Any]:
    start = base + int(span.get("start", 0) * SECOND_NS)
    return {
        "traceId": hexadecimal(span.get("trace", "trace"), 32),
        "spanId": hexadecimal(span.get("id", f"s{index}"), 16),
        "parentSpanId": hexadecimal(span["parent"], 16) if "parent" in span else "",
        "name": span.get("name", "call"),
        "kind": 3,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + int(span.get("duration", 0.5) * SECOND_NS)),
        "attributes": key_values(span["attributes"]),
        "status": span.get("status", {}),
        "events": [
            {
                "name": event["name"],
                "timeUnixNano": str(start),
                "attributes": key_values(event["attributes"]),
            }
            for event in span.get("events", [])
        ],
    }


def body_of(case: dict[str, Any]) -> dict[str, Any]:
    last = max(span.get("start", 0) for span in case["spans"])
    base = int((clock.now().timestamp() - last - 60) * SECOND_NS)
    resource = {"attributes": key_values({"service.name": "app", "failsoft.node": "plans"})}
    scopes = [
        {"scope": {"name": span.get("scope", "by.hand")}, "spans": [otlp_span(index, span, base)]}
        for index, span in enumerate(case["spans"])
    ]
    return {"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}


def told(event: Event) -> dict[str, Any]:
    payload = EventPayload.objects.filter(event_id=event.event_id).first()
    run = AgentRun.objects.get(project=event.project_id, correlation_id=event.correlation_id)
    return {
        "kind": event.kind,
        "error": event.parse_error_type,
        "call_error": event.call_error_type,
        "model": event.model,
        "attempt": event.attempt,
        "cycle": event.cycle,
        "upstream": event.upstream,
        "input_tokens": event.input_tokens,
        "output_tokens": event.output_tokens,
        "preview": payload.raw_output_preview if payload is not None else None,
        "outcome": run.outcome,
    }


@pytest.fixture
def send(client: Client) -> Callable[[dict[str, Any]], list[dict[str, Any]]]:
    """Post the spans of a case and return what is stored of their calls."""
    project = Project.objects.create(slug="p", name="P")
    register_schema(project, "plans", SCHEMA, "1")
    key = issue_key(project, "agent", [Scope.INGEST]).text

    def post(case: dict[str, Any]) -> list[dict[str, Any]]:
        answer = client.post(
            "/v1/traces",
            body_of(case),
            content_type="application/json",
            headers={"Authorization": f"Bearer%20{key}"},
        )
        assert answer.status_code == 200
        SpanVerdict.objects.update(received_at=clock.now() - 2 * PATIENCE)
        settle_verdicts()
        AgentRun.objects.exclude(settles_at=None).update(settles_at=clock.now())
        settle_runs()
        calls = Event.objects.exclude(kind=EventKind.DEGRADED).order_by("occurred_at")
        return [told(event) for event in calls]

    return post


@pytest.mark.parametrize("case", BOOK["case"], ids=lambda case: case["name"])
def test_call_of_another_client_becomes_the_event_that_is_true_of_it(
    case: dict[str, Any], send: Callable[[dict[str, Any]], list[dict[str, Any]]]
) -> None:
    facts = send(case)
    true = [
        {k: BOOK[v[1:]] if str(v).startswith("$") else v for k, v in event.items()}
        for event in case["events"]
    ]
    assert [
        {name: fact[name] for name in event} for fact, event in zip(facts, true, strict=False)
    ] == true, facts
    assert len(facts) == len(true)


def failed(message: str = "Error code: 500") -> dict[str, Any]:
    return {
        "attributes": {"gen_ai.operation.name": "chat"},
        "status": {"code": 2, "message": message},
    }


@pytest.mark.parametrize(
    ("models", "model"), [(["m"], "m"), (["m", "n"], None), ([None, "m"], "m"), ([], None)]
)
def test_lone_failed_call_has_the_only_model_of_its_node(
    models: list[str | None],
    model: str | None,
    send: Callable[[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    for name in models:
        Series.objects.create(
            project=Project.objects.get(), key=uuid4(), node="plans", provider="p", model=name
        )
    (fact,) = send({"spans": [failed()]})
    assert fact["model"] == model
