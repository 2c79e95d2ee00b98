"""An answer that is posted becomes the event that the same answer in a span becomes."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import ApiKey, Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest import answer_verdicts
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.api.events import post_items
from diagnostics.ingest.key_counts import tallies_of
from diagnostics.ingest.otlp.protobuf import read_spans
from diagnostics.ingest.receiving import receive_spans
from diagnostics.ingest.span_runs import settle_runs
from diagnostics.redaction.event_rows import PAYLOAD_FIELDS
from diagnostics.store import aggregation
from diagnostics.store.models import Event, EventPayload
from diagnostics.store.run_models import AgentRun
from failsoft.answered import MAX_ANSWER
from failsoft.events import EventKind
from failsoft.identifiers import EPOCH
from tests.diagnostics.builders import succeeded
from tests.diagnostics.ingest.test_span_runs import (
    RUNS,
    Trace,
    measures,
    now_ns,
    outcomes_of,
    posted,
)
from tests.diagnostics.otlp_bodies import span, traces
from tests.integrations.clients import REPLIES, SECRET
from tests.integrations.families.schema import PLAN

pytestmark = pytest.mark.django_db
URL = "/api/v1/events"
ANSWERED = [n for n, one in REPLIES.items() if one["event"]["kind"] != EventKind.PROVIDER_ERROR]
GOOD = '{"title": "Refund", "steps": [{"tool": "search"}]}'
Post = Callable[..., dict[str, Any]]


@pytest.fixture
def key() -> ApiKey:
    project = Project.objects.create(slug="p", name="P")
    register_schema(project, "plan", PLAN, "3")
    return issue_key(project, "agent", [Scope.INGEST]).row


@pytest.fixture
def post(key: ApiKey) -> Post:
    secret = issue_key(key.project, "client", [Scope.INGEST]).text

    def send(*items: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {secret}"}
        body = json.dumps(items)
        url = f"{URL}?verbose=1"
        answer = Client().post(url, body, content_type="application/json", headers=headers)
        assert answer.status_code in (200, 207), answer.text
        told: dict[str, Any] = answer.json()
        return told

    return send


def answered(**changes: object) -> dict[str, Any]:
    """Give an answer as an agent posts it; a change to Ellipsis leaves the field out."""
    item = {
        "name": "answered",
        "node": "plan",
        "occurred_at": clock.now().isoformat(),
        "correlation_id": "run-1",
        "text": GOOD,
        "model": "claude-haiku-4",
        "provider": "anthropic",
    }
    return {name: value for name, value in {**item, **changes}.items() if value is not ...}


def only_event() -> tuple[Event, EventPayload | None]:
    event = Event.objects.get()
    return event, EventPayload.objects.filter(event_id=event.event_id).first()


@pytest.mark.parametrize("name", ANSWERED)
def test_every_answer_of_the_book_gives_the_event_that_is_true_of_it(name: str, post: Post) -> None:
    reply, true = REPLIES[name], REPLIES[name]["event"]
    told = {"refusal": reply["refusal"], "text": ...} if "refusal" in reply else {}
    post(answered(**{"text": reply.get("text"), "finish_reason": reply.get("finish")} | told))
    event, payload = only_event()
    assert (event.kind, event.parse_error_type) == (true["kind"], true.get("error"))
    place = payload.validation_errors[0] if payload and payload.validation_errors else {}
    for field in ("path", "line", "column"):
        if field in true:
            assert place[field] == true[field]
    if "preview" in true:
        assert payload is not None
        assert payload.raw_output_preview is not None
        assert true["preview"] in payload.raw_output_preview
        assert SECRET not in payload.raw_output_preview
    if "repairs" in true:
        assert payload is not None
        assert [repair["kind"] for repair in payload.repairs] == true["repairs"]


SEARCH = {"type": "object", "properties": {"q": {"type": "string"}}}
MESSAGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "good": ({"content": GOOD}, {"text": GOOD}),
    "schema": ({"content": '{"title": 7}'}, {"text": '{"title": 7}'}),
    "cut": ({"content": '{"title": "R'}, {"text": '{"title": "R', "finish_reason": "length"}),
    "call": (
        {"tool_calls": [{"name": "plan", "arguments": {"title": "Refund"}}]},
        {"tool_calls": [{"name": "plan", "arguments": {"title": "Refund"}}], "text": ...},
    ),
    "provider's call": (
        {"tool_calls": [{"function": {"name": "plan", "arguments": '{"title": 1}'}}]},
        {"tool_calls": [{"function": {"name": "plan", "arguments": '{"title": 1}'}}], "text": None},
    ),
    "other tool": (
        {"tool_calls": [{"name": "search", "arguments": '{"q": 1}'}]},
        {
            "tool_calls": [{"name": "search", "arguments": '{"q": 1}'}],
            "text": "",
            "tools": [{"type": "function", "function": {"name": "search", "parameters": SEARCH}}],
        },
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_span_and_a_posted_answer_give_the_same_event(name: str, key: ApiKey, post: Post) -> None:
    message, told = MESSAGES[name]
    other = Project.objects.create(slug="otel", name="OTel")
    register_schema(other, "plan", PLAN, "3")
    attributes: dict[str, Any] = {
        "failsoft.node": "plan",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", **message}]),
        "gen_ai.response.finish_reasons": [told.get("finish_reason", "stop")],
    }
    if "tools" in told:
        attributes["gen_ai.tool.definitions"] = json.dumps(told["tools"])
    exported = traces(span(attributes)).SerializeToString()
    receive_spans(other.pk, read_spans(exported))
    post(answered(**{"finish_reason": "stop", **told}))
    by_span, by_post = (facts_of(project) for project in (other, key.project))
    assert by_post == by_span
    assert name == "good" or by_post["kind"] == EventKind.PARSE_INVALID


def facts_of(project: Project) -> dict[str, Any]:
    event = Event.objects.get(project=project)
    payload = EventPayload.objects.filter(event_id=event.event_id).first()
    kept = {name: getattr(payload, name, None) for name in PAYLOAD_FIELDS if name != "attributes"}
    names = ("kind", "node", "parse_error_type", "finish_reason", "schema", "schema_version")
    return kept | {name: getattr(event, name) for name in (*names, "attempt")}


def test_the_answer_of_the_server_says_what_an_answer_was_classified_as(post: Post) -> None:
    told = post(answered(), answered(text="no plan", correlation_id="run-2"))
    assert [one["name"] for one in told["results"]] == [
        "graph.plan.succeeded",
        "graph.plan.parse_invalid",
    ]
    assert [one["parse_error_type"] for one in told["results"]] == [None, "not_json"]


def test_the_node_may_stand_in_the_name(post: Post) -> None:
    post(answered(name="graph.plan.answered", node=..., text="no plan"))
    event, payload = only_event()
    assert (event.node, event.schema, event.schema_version) == ("plan", "Plan", "3")
    assert payload is not None


@pytest.mark.parametrize(
    "posted",
    [
        PLAN,
        {"name": "plan", "schema": PLAN, "strict": True},
        {"type": "json_schema", "schema": PLAN},
        {"type": "json_schema", "json_schema": {"name": "plan", "schema": PLAN}},
        {"format": {"type": "json_schema", "name": "plan", "schema": PLAN}},
    ],
)
def test_a_schema_that_is_posted_along_is_used_where_none_is_registered(
    post: Post, posted: dict[str, Any]
) -> None:
    post(answered(node="summary", answer_schema=posted, text='{"title": "x"}'))
    event, _ = only_event()
    assert (event.parse_error_type, event.schema) == ("schema_invalid", "Plan")


def test_a_call_that_gave_no_answer_is_a_provider_error(post: Post) -> None:
    post(answered(text=..., error="429"), answered(text=..., error="APITimeoutError"))
    kinds = Event.objects.values_list("kind", "call_error_type")
    assert set(kinds) == {("provider_error", "rate_limited"), ("provider_error", "timeout")}


def test_an_answer_that_broke_off_before_its_first_word_is_a_provider_error(post: Post) -> None:
    post(answered(text=None, finish_reason="error"))
    event, _ = only_event()
    assert (event.kind, event.parse_error_type) == (EventKind.PROVIDER_ERROR, None)


def test_nothing_of_a_good_answer_is_kept(post: Post) -> None:
    post(answered())
    assert EventPayload.objects.count() == 0


def test_of_a_bad_answer_the_redacted_preview_is_kept_and_nothing_else(post: Post) -> None:
    text = f"sk-proj-{SECRET} " + "word " * 10_000
    post(answered(text=text))
    _, payload = only_event()
    assert payload is not None
    assert payload.raw_output_preview is not None
    assert payload.raw_output_preview.startswith("[REDACTED:openai_key]")
    assert len(payload.raw_output_preview.encode()) <= 8192
    assert payload.attributes == {}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"text": ...}, "/text"),
        ({"text": ..., "tool_calls": []}, "/text"),
        ({"text": 7}, "/text"),
        ({"text": "x" * (MAX_ANSWER + 1)}, "/text"),
        ({"node": ...}, "/node"),
        ({"node": "Plan!"}, "/node"),
        ({"name": "graph.other.answered"}, "/node"),
        ({"name": "graph.Plan.answered"}, "/name"),
        ({"tool_calls": [{"name": "a", "arguments": "{}"}] * 101}, "/tool_calls"),
        ({"attempt": 0}, "/attempt"),
        ({"finish_reason": 7}, "/finish_reason"),
        ({"correlation_id": ...}, "/correlation_id"),
        ({"occurred_at": ...}, "/occurred_at"),
        ({"attributes": {"a": {"b": 1}}}, "/attributes/a"),
    ],
)
def test_what_is_no_answer_is_refused_with_its_place(
    changes: dict[str, Any], path: str, post: Post
) -> None:
    told = post(answered(**changes))
    (result,) = told["results"]
    assert (result["status"], result["event_id"]) == ("invalid", None)
    assert [fault["path"] for fault in result["errors"]] == [path]
    assert not Event.objects.exists()


def test_a_large_plan_as_arguments_is_taken(post: Post) -> None:
    steps = [{"tool": f"t{n}", "args": {"n": n}} for n in range(2_000)]
    call = {"name": "plan", "arguments": {"title": "Large", "steps": steps}}
    post(answered(text=..., tool_calls=[call]))
    event, _ = only_event()
    assert event.kind == EventKind.SUCCEEDED


def test_the_same_answer_posted_again_is_a_duplicate(post: Post) -> None:
    item = answered(text="no plan")
    assert post(item)["accepted"] == 1
    again = post(item, item)
    assert (again["accepted"], again["duplicates"]) == (0, 2)
    assert AgentRun.objects.get().calls == 1


def test_a_schema_that_is_registered_meanwhile_makes_no_conflict(key: ApiKey, post: Post) -> None:
    item = answered(node="later", text='{"title": 7}')
    assert post(item)["accepted"] == 1
    register_schema(key.project, "later", PLAN, "1")
    assert post(item)["duplicates"] == 1
    assert Event.objects.get().kind == EventKind.SUCCEEDED


def test_answers_without_an_attempt_are_numbered_and_the_run_ends(post: Post) -> None:
    begin = clock.now() - timedelta(minutes=10)

    def at(seconds: float) -> str:
        return (begin + timedelta(seconds=seconds)).isoformat()

    bad = [answered(text="no", occurred_at=at(n), latency_ms=500) for n in (1, 2)]
    post(*bad, answered(occurred_at=at(3), latency_ms=500))
    post(*[answered(text="no", correlation_id="run-2", occurred_at=at(n)) for n in (1, 2, 3)])
    post(answered(correlation_id="run-3", occurred_at=at(1)))
    AgentRun.objects.exclude(settles_at=None).update(settles_at=clock.now())
    assert settle_runs() == 3
    runs = AgentRun.objects.order_by("correlation_id")
    assert list(runs.values_list("outcome", "attempts", "calls")) == [
        ("recovered", 3, 3),
        ("degraded", 3, 3),
        ("ok_first", 1, 1),
    ]
    end = Event.objects.get(kind=EventKind.DEGRADED)
    assert (end.correlation_id, end.attempts, end.reason) == ("run-2", 3, "plan_parse_failed")


def test_the_same_runs_told_by_answers_and_by_events_give_the_same_series(key: ApiKey) -> None:
    """Good answers, answers that are not JSON, and calls that ran out of time."""
    start = now_ns()
    events = Project.objects.create(slug="events", name="Events")
    posted(events, RUNS, start)
    answers = Project.objects.create(slug="answers", name="Answers")
    register_schema(answers, "planner", {"type": "object"}, None)
    told = {"g": {"text": "{}"}, "x": {"text": "not json"}, "t": {"error": "timeout"}}
    names = {"environment": "prod", "source": "support-bot", "release": "2026.11.20-2"}
    counts = {"latency_ms": 1840, "input_tokens": 911, "output_tokens": 512}
    for run in (Trace(outcomes, start) for outcomes in RUNS):
        items = [
            answered(
                node="planner",
                finish_reason="stop",
                correlation_id=run.trace_id,
                occurred_at=(EPOCH + timedelta(seconds=call.end_time_unix_nano / 1e9)).isoformat(),
                **{"text": ..., **names, **counts, **told[word]},
            )
            for word, call in zip(run.outcomes, run.calls, strict=True)
        ]
        # In whatever order they come.
        post_items(answers.pk, items[::-1], b"", 1.0)
    AgentRun.objects.exclude(settles_at=None).update(settles_at=clock.now())
    assert settle_runs() == len(RUNS)
    aggregation.fold()
    assert measures(answers) == measures(events)
    assert outcomes_of(answers) == outcomes_of(events)


def test_attempts_that_are_told_count_as_posted_ones_do(post: Post) -> None:
    post(answered(attempt=1, text="no"), answered(attempt=2))
    run = AgentRun.objects.get()
    assert (run.outcome, run.attempts, run.settles_at) == ("recovered", 2, None)


def test_an_answer_that_is_too_dear_to_check_is_stored_and_said(
    key: ApiKey, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_verdicts, "JUDGING_SECONDS", -1.0)
    told = post(answered(text="no plan"))
    assert told["accepted"] == 1
    assert [one["code"] for one in told["warnings"]] == ["unchecked"]
    tallies = tallies_of(key.project_id, "source", clock.now() - timedelta(hours=1))
    assert [(one.stored, one.unchecked) for one in tallies.values()] == [(1, 1)]
    assert Event.objects.get().kind == EventKind.SUCCEEDED


def test_events_cost_no_query_for_answers(
    key: ApiKey,
    django_assert_num_queries: DjangoAssertNumQueries,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    """The statement that stores them is sent past the counter; schemas are looked up by it."""
    with django_capture_on_commit_callbacks(execute=True):
        post_items(key.project_id, [succeeded(), answered(attempt=1)], b"", 1.0)
    with django_assert_num_queries(0):
        post_items(key.project_id, [succeeded() for _ in range(20)], b"", 1.0)
    answers = [answered(attempt=1) for _ in range(20)]
    with django_assert_num_queries(1):
        post_items(key.project_id, answers, b"", 1.0)


def test_a_call_is_placed_by_its_end_and_its_latency(post: Post) -> None:
    """Two calls at once are two first attempts; one after the other, they are two attempts."""
    at = clock.now() - timedelta(minutes=10)
    later = (at + timedelta(seconds=1)).isoformat()
    post(
        answered(text="no", occurred_at=at.isoformat(), latency_ms=500),
        answered(occurred_at=later, latency_ms=1_400),
    )
    AgentRun.objects.update(settles_at=clock.now())
    settle_runs()
    assert set(Event.objects.values_list("kind", "attempt")) == {
        (EventKind.PARSE_INVALID, 1),
        (EventKind.SUCCEEDED, 1),
        (EventKind.DEGRADED, None),
    }


def test_secrets_in_unknown_fields_are_masked_whatever_they_are_in(post: Post) -> None:
    secret, password = f"sk-proj-{SECRET}", "hunter2-hunter2"
    more: dict[str, Any] = {
        "db": {"password": password, "url": f"postgres://a:{password}@db/x"},
        "log_lines": [{"password": password}, f"key {secret}"],
        "note": f"{secret} " + "x" * 5_000,
    }
    post(answered(text="no plan", **more))
    _, payload = only_event()
    assert payload is not None
    kept = json.dumps(payload.attributes)
    assert set(payload.attributes) == {"db.password", "db.url", "log_lines", "note"}
    assert SECRET not in kept
    assert password not in kept
