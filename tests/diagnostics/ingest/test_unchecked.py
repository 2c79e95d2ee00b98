"""An answer that nothing checked is a state of its own: a call, but no first pass."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import ApiKey, Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest import answer_verdicts
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.otlp.protobuf import read_spans
from diagnostics.ingest.receiving import receive_spans
from diagnostics.ingest.recording import record
from diagnostics.ingest.span_runs import settle_runs
from diagnostics.ingest.views import unchecked_of
from diagnostics.metrics import EventCollector
from diagnostics.settings.get_started import steps_of
from diagnostics.store import aggregation
from diagnostics.store.models import Event
from diagnostics.store.run_models import AgentRun, RunOutcome
from failsoft.events import PostedEvent
from tests.console import Role, make_member
from tests.diagnostics.builders import degraded, succeeded, wire_event
from tests.diagnostics.otlp_bodies import span, traces
from tests.diagnostics.store.test_folding import counted, recount
from tests.shifted_clock import SPANS_ENDED, shift_clock

pytestmark = pytest.mark.django_db
PLAN: dict[str, Any] = {"title": "Plan", "type": "object", "required": ["steps"]}
Get = Callable[..., Any]


@pytest.fixture
def key(project: Project) -> ApiKey:
    return issue_key(project, "agent", [Scope.INGEST]).row


class Agent:
    """Whoever holds a key of a project: posts, and reads what came of it."""

    def __init__(self, project: Project) -> None:
        key = issue_key(project, "client", [Scope.INGEST, Scope.READ]).text
        self.headers = {"Authorization": f"Bearer {key}"}

    def post(self, *items: dict[str, Any]) -> dict[str, Any]:
        told = [{**ANSWER, "occurred_at": clock.now().isoformat(), **item} for item in items]
        answer = Client().post(
            "/api/v1/events?verbose=1",
            json.dumps(told),
            content_type="application/json",
            headers=self.headers,
        )
        assert answer.status_code == 200, answer.text
        read: dict[str, Any] = answer.json()
        return read

    def get(self, path: str, **asked: str) -> Any:
        answer = Client().get(f"/api/v1/{path}", asked, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()


ANSWER = {"name": "answered", "node": "chat", "correlation_id": "run-1", "attempt": 1}


@pytest.fixture
def agent(project: Project) -> Agent:
    return Agent(project)


def send(key: ApiKey, attributes: dict[str, Any], **changes: Any) -> None:
    start_ns = int((clock.now() - timedelta(minutes=5)).timestamp()) * 10**9
    told = span({"failsoft.node": "chat", **attributes}, start_ns=start_ns, **changes)
    receive_spans(key.project_id, read_spans(traces(told).SerializeToString()))


def output(text: str) -> dict[str, str]:
    parts = [{"type": "text", "content": text}]
    return {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}])}


def record_all(project: Project, *events: dict[str, Any]) -> None:
    now = clock.now().isoformat()
    told = [PostedEvent.model_validate({**event, "occurred_at": now}) for event in events]
    record(project.pk, told)


def reasons() -> list[tuple[str, str | None]]:
    return list(Event.objects.order_by("occurred_at").values_list("kind", "unchecked"))


@pytest.mark.parametrize(
    ("fields", "unchecked"),
    [
        ({"text": "The train leaves at nine."}, "no_schema"),
        ({"text": '{"at": 9}'}, "no_schema"),
        ({"text": '{"at": 9}', "output_mode": "text"}, "no_schema"),
        ({"text": '{"at": 9}', "output_mode": "json"}, None),
        ({"text": '{"at": 9}', "answer_schema": {"type": "object"}}, None),
        ({"text": '{"at": 9}', "answer_schema": {"type": "json_object"}}, None),
        ({"text": '{"at": 9}', "answer_schema": {"type": "objekt"}}, "no_schema"),
        ({"tool_calls": [{"name": "find", "arguments": "{}"}]}, None),
    ],
)
def test_an_answer_is_unchecked_without_a_schema_unless_it_is_said_to_be_json(
    agent: Agent, fields: dict[str, Any], unchecked: str | None
) -> None:
    told = agent.post(fields)
    assert reasons() == [("succeeded", unchecked)]
    (result,) = told["results"]
    assert (result["name"], result["unchecked"]) == ("graph.chat.succeeded", unchecked)
    assert ("warnings" in told) is (unchecked is not None)


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"properties": {"at": {"type": "objekt"}}}, "/properties/at/type: expected one of "),
        ({"schema": {"required": "at"}}, "/required: expected a list of names"),
    ],
)
def test_a_schema_that_cannot_be_read_is_named_with_its_fault(
    agent: Agent, schema: dict[str, Any], fault: str
) -> None:
    told = agent.post({"text": '{"at": 9}', "answer_schema": schema})
    (warning,) = [one for one in told["warnings"] if one["path"] == "/answer_schema"]
    assert (warning["code"], fault in warning["message"]) == ("argument", True)


@pytest.mark.parametrize(
    ("attributes", "unchecked"),
    [
        (output("The train leaves at nine."), "no_schema"),
        (output('{"at": 9}') | {"gen_ai.output.type": "json"}, None),
        ({}, "no_schema"),
        ({"gen_ai.output.type": "json"}, "no_answer"),
        ({"failsoft.kind": "succeeded"}, None),
    ],
)
def test_a_span_is_unchecked_without_a_schema_or_without_its_answer(
    key: ApiKey, attributes: dict[str, Any], unchecked: str | None
) -> None:
    send(key, attributes)
    assert reasons() == [("succeeded", unchecked)]


def test_a_node_with_a_schema_checks_its_answers(agent: Agent, project: Project) -> None:
    register_schema(project, "chat", PLAN, "1")
    agent.post({"text": '{"steps": []}'})
    assert reasons() == [("succeeded", None)]


def test_an_answer_whose_check_ran_out_is_unchecked(
    agent: Agent, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_schema(project, "chat", PLAN, "1")
    monkeypatch.setattr(answer_verdicts, "JUDGING_SECONDS", -1.0)
    (warning,) = agent.post({"text": '{"steps": []}'})["warnings"]
    assert reasons() == [("succeeded", "over_budget")]
    assert "node chat was not checked: checking takes more" in warning["message"]
    # What takes no time is checked all the same.
    agent.post({"text": "", "correlation_id": "run-2"})
    assert Event.objects.get(correlation_id="run-2").parse_error_type == "empty_output"


def test_the_warnings_name_node_reason_and_remedy(agent: Agent) -> None:
    told = agent.post(
        {"text": "a"}, {"text": "b", "attempt": 2}, {"text": "c", "node": "plan"}, {"text": ""}
    )
    assert [warning["code"] for warning in told["warnings"]] == ["unchecked", "unchecked"]
    many, one = (warning["message"] for warning in told["warnings"])
    assert many == (
        "2 answers of node chat were not checked: no schema, or none that can be read;"
        " register a schema (PUT /api/v1/schemas/chat), or send output_mode json"
        " (gen_ai.output.type) if any JSON will do"
    )
    assert one.startswith("1 answer of node plan was not checked")


def test_a_run_with_an_unchecked_answer_is_no_first_pass(agent: Agent) -> None:
    agent.post({"text": "a"}, {"text": "b", "correlation_id": "run-2", "output_mode": "json"})
    agent.post({"text": "{}", "correlation_id": "run-3", "output_mode": "json"})
    agent.post({"text": "c", "correlation_id": "run-3"})
    runs = agent.get("runs")["items"]
    assert {run["correlation_id"]: run["outcome"] for run in runs} == {
        "run-1": "unchecked",
        "run-2": "open",
        "run-3": "unchecked",
    }
    found = agent.get("runs", outcome="unchecked")["items"]
    assert {run["correlation_id"] for run in found} == {"run-1", "run-3"}
    (event,) = agent.get("events", outcome="ok_first")["items"]
    assert (event["correlation_id"], event["unchecked"]) == ("run-3", None)
    assert len(agent.get("events", outcome="unchecked")["items"]) == 2


def test_an_unchecked_span_counts_as_a_run_once_its_run_is_over(key: ApiKey) -> None:
    send(key, output("The train leaves at nine."))
    assert (counted("delta")["attempts"], counted("delta")["runs"]) == (1, 0)
    AgentRun.objects.update(settles_at=clock.now())
    assert settle_runs() == 1
    aggregation.fold()
    assert AgentRun.objects.get().outcome == RunOutcome.UNCHECKED
    total = counted("hour")
    assert (total["runs"], total["ok_first"], total["unchecked_no_schema"]) == (1, 0, 1)
    assert total == recount()


def test_series_tell_unchecked_answers_apart_from_first_passes(
    agent: Agent, project: Project
) -> None:
    record_all(
        project,
        *[succeeded() for _ in range(6)],
        succeeded(coerced=[{"path": "/a", "kind": "case"}]),
        succeeded(attempt=2),
        *[succeeded(unchecked="no_schema") for _ in range(90)],
        *[degraded() for _ in range(2)],
    )
    (item,) = agent.get("series")["items"]
    assert (item["runs"], item["degraded"], item["unchecked"]) == (100, 2, 90)
    assert (item["first_pass_rate"], item["unaltered_rate"]) == (0.7, 0.6)
    assert item["repair_success_rate"] == pytest.approx(1 / 3)


def test_where_nothing_was_checked_there_is_no_first_pass_rate(
    agent: Agent, project: Project
) -> None:
    record_all(project, *[succeeded(unchecked="no_schema") for _ in range(30)])
    (item,) = agent.get("series")["items"]
    assert (item["runs"], item["unchecked"]) == (30, 30)
    assert (item["first_pass_rate"], item["degraded_rate"]) == (None, 0.0)


def test_metrics_count_unchecked_and_altered_answers(project: Project) -> None:
    record_all(
        project,
        succeeded(),
        succeeded(coerced=[{"path": "/a", "kind": "case"}]),
        succeeded(unchecked="no_schema"),
        succeeded(unchecked="over_budget"),
    )
    found = {
        (sample.name, *list(sample.labels.values())[2:]): sample.value
        for metric in EventCollector(project.pk).collect()
        for sample in metric.samples
    }
    assert found["failsoft_unchecked_answers_total", "no_schema"] == 1
    assert found["failsoft_unchecked_answers_total", "over_budget"] == 1
    assert found["failsoft_altered_answers_total",] == 1
    assert found["failsoft_runs_total", "ok_first"] == 2
    assert found["failsoft_runs_total", "unchecked"] == 2
    assert found["failsoft_events_total", "succeeded"] == 4
    assert found["failsoft_events_total", "degraded"] == 0


def test_the_data_page_counts_them_by_node_and_reason_with_a_remedy(
    agent: Agent, key: ApiKey, project: Project
) -> None:
    viewer = Client()
    viewer.force_login(make_member(project, "vera", Role.VIEWER))
    assert "Unchecked answers" not in viewer.get("/ingest/").text
    agent.post({"text": "a"}, {"text": "b"}, {"text": "c", "node": "plan"})
    send(key, {"gen_ai.output.type": "json"})
    rows = [(row.node, row.reason, row.count) for row in unchecked_of(project.pk, clock.now())]
    assert rows == [("chat", "no_schema", 2), ("chat", "no_answer", 1), ("plan", "no_schema", 1)]
    page = viewer.get("/ingest/").text
    assert "Register a schema (PUT /api/v1/schemas/plan), or send output_mode json" in page
    assert "Enable content capture" in page


def test_setting_up_is_not_done_by_an_answer_that_nothing_checked(
    agent: Agent, project: Project
) -> None:
    agent.post({"text": "a"})
    aggregation.fold()
    _, _, sent, seen = steps_of(project.pk)
    assert (sent.is_done, seen.is_done) == (True, False)
    assert "1 answer of node chat was not checked: no schema" in seen.says
    agent.post({"text": "{}", "output_mode": "json", "correlation_id": "run-2"})
    aggregation.fold()
    assert all(step.is_done for step in steps_of(project.pk))


@pytest.mark.parametrize("attributes", [output("a"), {}])
def test_setting_up_is_not_done_by_an_unchecked_span(
    key: ApiKey, project: Project, attributes: dict[str, Any]
) -> None:
    shift_clock(SPANS_ENDED)
    agent = Agent(project)
    answer = Client().post(
        "/v1/traces",
        traces(span(attributes)).SerializeToString(),
        content_type="application/x-protobuf",
        headers=agent.headers,
    )
    # Exporters log what they are told with every batch; a node without a schema may be meant.
    assert answer.content == b""
    assert not steps_of(project.pk)[3].is_done


def test_an_agent_may_say_that_it_checked_nothing_itself(agent: Agent) -> None:
    told = agent.post({"name": "graph.chat.succeeded", "cycle": 1, "unchecked": "no_schema"})
    assert told["accepted"] == 1
    assert reasons() == [("succeeded", "no_schema")]


def test_only_a_success_can_be_unchecked(project: Project) -> None:
    with pytest.raises(ValueError, match="was checked"):
        PostedEvent.model_validate(wire_event(unchecked="no_schema"))
