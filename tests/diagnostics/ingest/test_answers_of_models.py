"""An answer that nobody can use is no success, whether it was posted or came in a span."""

import json
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.otlp.protobuf import read_spans
from diagnostics.ingest.receiving import receive_spans
from diagnostics.store.models import Event
from failsoft.events import ParseErrorType
from tests.diagnostics.ingest.test_span_runs import now_ns
from tests.diagnostics.otlp_bodies import span, traces
from tests.model_answers import Answer, Finding, Outcome, read_answers, unexpected

pytestmark = pytest.mark.django_db
FILE = Path(__file__).parent / "answers_of_models.toml"
ANSWERS = [answer for answer in read_answers(FILE, "answered") if answer.kind != "offered"]
OFFERED = tomllib.loads(FILE.read_text(encoding="utf-8"))["offered"]
ERRORS = frozenset(ParseErrorType)
TOOLS, SCHEMA = json.loads(OFFERED["tools"]), json.loads(OFFERED["schema"])


@pytest.fixture
def project() -> Project:
    project = Project.objects.create(slug="p", name="P")
    register_schema(project, "checked", SCHEMA, None)
    return project


@pytest.mark.parametrize("way", ["post", "export"])
def test_each_answer_gives_the_event_that_is_true_of_it(way: str, project: Project) -> None:
    findings = post(project) if way == "post" else export(project)
    faults = unexpected(findings)
    assert not faults, "\n".join(faults)


def post(project: Project) -> list[Finding]:
    """Post all answers in one request."""
    key = issue_key(project, "client", [Scope.INGEST]).text
    body = json.dumps([_item(answer) for answer in ANSWERS])
    headers = {"Authorization": f"Bearer {key}"}
    response = Client().post(
        "/api/v1/events", body, content_type="application/json", headers=headers
    )
    assert response.status_code in (200, 207), response.text
    return _findings(project)


def export(project: Project) -> list[Finding]:
    """Export all answers in one request, each in a trace of its own."""
    start = now_ns()
    spans = [
        span(
            _attributes(answer),
            trace_id=f"{place + 1:032x}",
            span_id=f"{place + 1:016x}",
            start_ns=start,
        )
        for place, answer in enumerate(ANSWERS)
    ]
    exported = traces(*spans).SerializeToString()
    receive_spans(project.pk, read_spans(exported))
    return _findings(project)


def _item(answer: Answer) -> dict[str, Any]:
    told = answer.told
    item: dict[str, Any] = {
        "name": "answered",
        "node": _node(answer),
        "occurred_at": clock.now().isoformat(),
        "correlation_id": answer.name,
        "model": "m-1",
        "text": told.get("text"),
    }
    if "finish_reason" in told:
        item["finish_reason"] = told["finish_reason"]
    if "calls" in told:
        item["tool_calls"] = json.loads(told["calls"])
    if told.get("tools"):
        item["tools"] = TOOLS
    if "tokens" in told:
        item["output_tokens"], item["reasoning_tokens"] = told["tokens"]
    return item


def _attributes(answer: Answer) -> dict[str, Any]:
    told = answer.told
    reason = told.get("finish_reason")
    message = {"role": "assistant", "parts": _parts(told), "finish_reason": reason}
    attributes: dict[str, Any] = {
        "failsoft.node": _node(answer),
        "failsoft.correlation_id": answer.name,
        "gen_ai.output.messages": json.dumps([message]),
        "gen_ai.response.finish_reasons": [reason] if reason else [],
    }
    if told.get("tools"):
        attributes["gen_ai.tool.definitions"] = json.dumps(TOOLS)
    if "tokens" in told:
        output, reasoning = told["tokens"]
        attributes["gen_ai.usage.output_tokens"] = output
        attributes["gen_ai.usage.reasoning.output_tokens"] = reasoning
    return attributes


def _parts(told: dict[str, Any]) -> list[dict[str, Any]]:
    texts = [{"type": "text", "content": told["text"]}] if "text" in told else []
    calls = [
        {"type": "tool_call", "id": "c", **call} for call in json.loads(told.get("calls", "[]"))
    ]
    return [*texts, *calls]


def _node(answer: Answer) -> str:
    return "checked" if answer.told.get("schema") else "free"


def _findings(project: Project) -> list[Finding]:
    stored = defaultdict(list)
    for event in Event.objects.filter(project=project):
        stored[event.correlation_id].append(event)
    return [_finding(answer, stored[answer.name]) for answer in ANSWERS]


def _finding(answer: Answer, events: list[Event]) -> Finding:
    outcomes = {_outcome(answer, event) for event in events} or {Outcome.AS_SUCCESS}
    shown = [(event.kind, event.parse_error_type, event.unchecked) for event in events]
    # A second event tells which tool is unknown.
    return Finding(answer, Outcome.RIGHT if Outcome.RIGHT in outcomes else outcomes.pop(), shown)


def _outcome(answer: Answer, event: Event) -> Outcome:
    right, kinds = answer.told["event"], answer.told.get("kinds")
    kind = "unchecked" if event.unchecked else event.kind
    if kind in right and (kind != "parse_invalid" or event.parse_error_type in (kinds or ERRORS)):
        return Outcome.RIGHT
    if kind == "succeeded":
        return Outcome.AS_SUCCESS
    return Outcome.REFUSED if right == ["succeeded"] else Outcome.WRONG_KIND
