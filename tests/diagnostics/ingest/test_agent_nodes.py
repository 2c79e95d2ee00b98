"""A call that names no node is the call of the agent around it."""

from typing import Any

import pytest

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import ApiKey, Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.models import AgentSpan
from diagnostics.ingest.otlp.protobuf import read_logs, read_spans
from diagnostics.ingest.receiving import receive_logs, receive_spans
from diagnostics.store.models import Event
from diagnostics.store.run_models import AgentRun, RunOutcome
from tests.diagnostics.ingest.test_span_runs import SECOND_NS, TOLD, now_ns, settle
from tests.diagnostics.otlp_bodies import MILLISECOND_NS, log_record, logs, span, traces

pytestmark = pytest.mark.django_db
STEP = {"gen_ai.operation.name": "agent_step"}
PLANNER = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Planner"}
PHOENIX = {**STEP, "openinference.span.kind": "AGENT", "graph.node.id": "planner"}
CHAIN = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "RunnableSequence"}
UNNAMED = {"gen_ai.operation.name": "invoke_agent"}
WEEKDAY = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.agent.name": "weekday"}


@pytest.fixture
def key() -> ApiKey:
    project = Project.objects.create(slug="p", name="P")
    return issue_key(project, "agent", [Scope.INGEST]).row


def nested(*attributes: dict[str, Any]) -> bytes:
    """Return a request with spans one below the other, the outermost first."""
    start_ns = now_ns()
    spans = [
        span(
            told,
            span_id=f"{depth + 1:016x}",
            parent_span_id=bytes.fromhex(f"{depth:016x}") if depth else b"",
            start_ns=start_ns + depth * MILLISECOND_NS,
        )
        for depth, told in enumerate(attributes)
    ]
    return traces(*reversed(spans)).SerializeToString()


@pytest.mark.parametrize(
    ("spans", "node"),
    [
        ((PLANNER, STEP, {}), "planner"),
        ((PHOENIX, STEP, {}), "planner"),
        # The innermost that has a name.
        ((WEEKDAY, PLANNER, {}), "planner"),
        ((PLANNER, UNNAMED, {}), "planner"),
        # What the call says is closer.
        ((PLANNER, {"gen_ai.agent.name": "critic"}), "critic"),
        ((PLANNER, {"failsoft.node": "chat"}), "chat"),
        ((UNNAMED, STEP, {}), "chat"),
        # The class of a framework is no name.
        ((PLANNER, CHAIN, {}), "planner"),
        ((CHAIN, STEP, {}), "chat"),
    ],
)
def test_a_call_without_a_node_has_that_of_the_innermost_named_agent_around_it(
    spans: tuple[dict[str, Any], ...], node: str, key: ApiKey
) -> None:
    receive_spans(key.project_id, read_spans(nested(*spans)))
    assert Event.objects.get().node == node


def test_an_agent_of_another_trace_or_in_a_circle_names_no_call(key: ApiKey) -> None:
    first, second = bytes.fromhex("1" * 16), bytes.fromhex("2" * 16)
    circle = span(STEP, span_id="1" * 16, parent_span_id=second)
    back = span(STEP, span_id="2" * 16, parent_span_id=first)
    agent = span(PLANNER, trace_id="1" * 32, span_id="1" * 16)
    call = span(start_ns=now_ns(), parent_span_id=first)
    body = traces(agent, circle, back, call).SerializeToString()
    receive_spans(key.project_id, read_spans(body))
    assert Event.objects.get().node == "chat"


@pytest.mark.parametrize("critic_knows", [True, False])
def test_the_node_of_an_agent_yields_to_one_that_any_span_of_the_call_names(
    critic_knows: bool, key: ApiKey
) -> None:
    agent_id, outer_id, start_ns = "a" * 16, "b" * 16, now_ns()
    outer = span(
        TOLD["s" if critic_knows else "g"],
        span_id=outer_id,
        parent_span_id=bytes.fromhex(agent_id),
        start_ns=start_ns,
    )
    inner = span(
        {"langgraph_node": "critic", **TOLD["g" if critic_knows else "s"]},
        span_id="c" * 16,
        parent_span_id=bytes.fromhex(outer_id),
        start_ns=start_ns,
    )
    agent = span(PLANNER, span_id=agent_id, start_ns=start_ns)
    body = traces(agent, outer, scope="framework")
    body.MergeFrom(traces(inner, scope="sdk"))
    receive_spans(key.project_id, read_spans(body.SerializeToString()))
    assert Event.objects.get().node == "critic"


def test_the_node_of_an_agent_wins_over_the_default_of_an_earlier_span(key: ApiKey) -> None:
    agent_id, outer_id, start_ns = "a" * 16, "b" * 16, now_ns()
    inner = span(span_id="c" * 16, parent_span_id=bytes.fromhex(outer_id), start_ns=start_ns)
    outer = span(
        TOLD["g"], span_id=outer_id, parent_span_id=bytes.fromhex(agent_id), start_ns=start_ns
    )
    agent = span(PLANNER, span_id=agent_id, start_ns=start_ns)
    for body in (traces(inner, scope="sdk"), traces(outer, agent, scope="framework")):
        receive_spans(key.project_id, read_spans(body.SerializeToString()))
    assert Event.objects.get().node == "planner"


@pytest.mark.parametrize(
    ("agent_told", "failed_told", "expected"),
    [
        # Sent before the agent that names its node.
        (PLANNER, {}, [("chat", 1), ("planner", 2)]),
        # It names the same node as a call without one.
        (PLANNER, {"failsoft.node": "chat"}, [("chat", 1), ("planner", 1)]),
        (PLANNER, {"failsoft.node": "plan"}, [("plan", 1), ("planner", 1)]),
        (UNNAMED, {"failsoft.node": "plan"}, [("plan", 1), ("chat", 1)]),
        (UNNAMED, {}, [("chat", 1), ("chat", 2)]),
    ],
)
def test_only_a_call_that_names_no_node_is_an_attempt_with_those_of_its_named_agent(
    agent_told: dict[str, Any],
    failed_told: dict[str, Any],
    expected: list[tuple[str, int]],
    key: ApiKey,
) -> None:
    start_ns, agent_id = now_ns(), bytes.fromhex("a" * 16)
    failed, good = (
        span(
            told,
            span_id=f"{place + 1:016x}",
            parent_span_id=agent_id,
            start_ns=start_ns + 3 * place * SECOND_NS,
        )
        for place, told in enumerate(({**TOLD["x"], **failed_told}, TOLD["g"]))
    )
    ended_ns = start_ns + 10 * SECOND_NS
    agent = span(agent_told, span_id="a" * 16, start_ns=start_ns, end_time_unix_nano=ended_ns)
    for batch in ((failed,), (good, agent)):
        receive_spans(key.project_id, read_spans(traces(*batch).SerializeToString()))
    settle()
    calls = Event.objects.exclude(kind="degraded").order_by("occurred_at")
    assert list(calls.values_list("node", "attempt")) == expected
    is_recovered = AgentRun.objects.get().outcome == RunOutcome.RECOVERED
    assert is_recovered == (expected[-1][1] == 2)


def test_an_agent_without_a_name_has_the_node_of_the_one_around_it(key: ApiKey) -> None:
    start_ns, ended_ns = now_ns(), now_ns() + 10 * SECOND_NS
    ids: dict[str, Any] = {"start_ns": start_ns, "end_time_unix_nano": ended_ns}
    outer = span(PLANNER, span_id="a" * 16, **ids)
    inner = span(UNNAMED, span_id="b" * 16, parent_span_id=bytes.fromhex("a" * 16), **ids)
    call = span(TOLD["x"], span_id="c" * 16, parent_span_id=bytes.fromhex("b" * 16))
    for batch in ((call,), (inner, outer)):
        receive_spans(key.project_id, read_spans(traces(*batch).SerializeToString()))
    nodes = AgentSpan.objects.order_by("span_id").values_list("node", flat=True)
    assert list(nodes) == ["planner", "planner"]


@pytest.mark.parametrize(
    ("nodes", "is_span_first", "expected"),
    [
        ("planner", True, ("parse_invalid", "schema_invalid", None)),
        # The text of a waiting answer is not kept: it cannot be checked again.
        ("planner", False, ("succeeded", None, "no_answer")),
        ("chat planner", False, ("succeeded", None, "no_answer")),
        ("chat", True, ("succeeded", None, "no_schema")),
        ("chat", False, ("succeeded", None, "no_schema")),
    ],
)
def test_an_answer_in_a_log_record_is_checked_only_against_the_schema_of_its_agent(
    nodes: str, is_span_first: bool, expected: tuple[str | None, ...], key: ApiKey
) -> None:
    for node in nodes.split():
        register_schema(key.project, node, {"type": "object", "required": ["steps"]}, "1")
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": "{}"}}
    record = log_record("gen_ai.choice", {}, choice, span_id=f"{2:016x}")

    def post_spans() -> None:
        receive_spans(key.project_id, read_spans(nested(PLANNER, {})))

    def post_record() -> None:
        receive_logs(key.project_id, read_logs(logs(record).SerializeToString()))

    order = (post_spans, post_record) if is_span_first else (post_record, post_spans)
    for post in order:
        post()
    event = Event.objects.get()
    assert event.node == "planner"
    assert (event.kind, event.parse_error_type, event.unchecked) == expected


def test_an_answer_without_anything_to_use_is_a_failure_under_any_node(key: ApiKey) -> None:
    register_schema(key.project, "planner", {"type": "object"}, "1")
    choice = {"index": 0, "finish_reason": "length", "message": {"content": '{"a'}}
    record = log_record("gen_ai.choice", {}, choice, span_id=f"{2:016x}")
    receive_logs(key.project_id, read_logs(logs(record).SerializeToString()))
    receive_spans(key.project_id, read_spans(nested(PLANNER, {})))
    event = Event.objects.get()
    assert (event.node, event.parse_error_type) == ("planner", "truncated")
