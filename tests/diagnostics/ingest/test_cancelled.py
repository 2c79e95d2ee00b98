"""What the caller gave up is counted apart, in none of the rates."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import ApiKey, Project
from diagnostics.accounts.projects import issue_key
from diagnostics.console.api import list_series
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.api.events import post_items
from diagnostics.ingest.api.outcomes import PostedOutcome, make_outcome_row, record_outcomes
from diagnostics.ingest.otlp.protobuf import read_spans
from diagnostics.ingest.receiving import receive_spans
from diagnostics.ingest.span_runs import settle_runs
from diagnostics.redaction.redactor import redact_found
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event
from diagnostics.store.run_models import AgentRun
from diagnostics.store.runs import rebuild_runs
from tests.console import make_member
from tests.diagnostics.builders import degraded, succeeded
from tests.diagnostics.otlp_bodies import key_values, span, traces
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db
PLAN: dict[str, Any] = {"title": "Plan", "type": "object", "required": ["steps"]}
OUTCOME: dict[str, Any] = {"minute": "2026-11-21T14:32:00Z", "source": "bot", "node": "next_step"}


@pytest.fixture
def key() -> ApiKey:
    shift_clock()
    project = Project.objects.create(slug="p1", name="P1")
    return issue_key(project, "k", [Scope.INGEST]).row


def cancelled(**changes: Any) -> dict[str, Any]:
    return succeeded(**{"name": "graph.next_step.cancelled", "attempt": None, **changes})


def post(key: ApiKey, *items: dict[str, Any]) -> None:
    at = clock.now().isoformat()
    posted, _ = post_items(
        key.project_id, [{**item, "occurred_at": at} for item in items], b"", 1.0
    )
    assert {result["status"] for result in posted.results} == {"created"}


def series(key: ApiKey) -> Mapping[str, Any]:
    ((item,), _) = list_series(key.project_id, Selection(), clock.now())
    return item


def outcome_of(key: ApiKey, run: str) -> str:
    stored: str = AgentRun.objects.get(project_id=key.project_id, correlation_id=run).outcome
    rebuild_runs(key.project_id, [run])
    rebuilt = AgentRun.objects.get(project_id=key.project_id, correlation_id=run).outcome
    assert stored == rebuilt
    return stored


def test_a_cancelled_call_or_run_is_in_no_rate(key: ApiKey) -> None:
    post(key, succeeded(correlation_id="a"), degraded(correlation_id="b"))
    before = series(key)
    post(
        key,
        cancelled(correlation_id="c", attempt=1, latency_ms=50),
        cancelled(correlation_id="d"),
        cancelled(correlation_id="e", attempt=2),
    )
    after = series(key)
    assert (before["cancelled"], after["cancelled"]) == (0, 3)
    moment = {"cancelled", "judged_at", "judged_anew_since"}
    assert {name: value for name, value in after.items() if name not in moment} == {
        name: value for name, value in before.items() if name not in moment
    }


def test_a_run_is_cancelled_unless_an_answer_was_degraded(key: ApiKey) -> None:
    post(
        key,
        cancelled(correlation_id="a"),
        succeeded(correlation_id="b"),
        cancelled(correlation_id="b", cycle=2),
        degraded(correlation_id="c"),
        cancelled(correlation_id="c", cycle=2),
    )
    assert [outcome_of(key, run) for run in "abc"] == ["cancelled", "cancelled", "degraded"]


def test_pages_show_a_cancelled_run(key: ApiKey, client: Client) -> None:
    post(key, cancelled(correlation_id="given-up", attempt=1))
    client.force_login(make_member(key.project))
    listed = client.get("/runs/?outcome=cancelled").content.decode()
    assert "given-up" in listed
    assert "given-up" not in client.get("/runs/?outcome=degraded").content.decode()
    assert "Cancelled" in client.get("/runs/given-up/").content.decode()
    assert "1 cancelled" in client.get("/").content.decode()


def test_posted_outcomes_count_them_apart(key: ApiKey) -> None:
    outcome = PostedOutcome.model_validate({**OUTCOME, "ok_first": 3, "cancelled": 2})
    assert outcome.runs == 3
    minute = clock.now().replace(second=0, microsecond=0)
    record_outcomes(key.project_id, [outcome.model_copy(update={"minute": minute})])
    item = series(key)
    assert (item["runs"], item["degraded"], item["cancelled"]) == (3, 0, 2)


def test_outcomes_stored_before_keep_their_hash() -> None:
    outcome = PostedOutcome.model_validate({**OUTCOME, "ok_first": 3})
    row = make_outcome_row(0, outcome, redact_found)
    other = outcome.model_copy(update={"cancelled": 1})
    assert row["content_hash"] != make_outcome_row(0, other, redact_found)["content_hash"]
    assert row["content_hash"] == (
        "e28a904e7c2cfa4b434679ae189be3450c587811325211ca841203f33654995a"
    )


@pytest.mark.parametrize(
    ("attributes", "events"),
    [
        ({"error.type": "asyncio.exceptions.CancelledError"}, ()),
        ({"error.type": "APIUserAbortError"}, ()),
        ({"error.type": "context canceled"}, ()),
        ({"http.response.status_code": 499}, ()),
        ({}, (("exception", {"exception.type": "GeneratorExit"}),)),
        ({"gen_ai.response.finish_reasons": ["cancelled"]}, ()),
        ({"failsoft.kind": "cancelled"}, ()),
    ],
)
def test_a_span_that_its_caller_gave_up_is_cancelled_and_not_truncated(
    key: ApiKey, attributes: dict[str, Any], events: Any
) -> None:
    register_schema(key.project, "chat", PLAN, None)
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": '{"steps": ["a'}]}]
    told = {"failsoft.node": "chat", "gen_ai.output.messages": answer, **attributes}
    is_error = (
        "gen_ai.response.finish_reasons" not in attributes and "failsoft.kind" not in attributes
    )
    call = span(told, events=events, is_error=is_error)
    receive_spans(key.project_id, read_spans(traces(call).SerializeToString()))
    settle_runs()
    assert list(Event.objects.values_list("kind", flat=True)) == ["cancelled"]
    (run,) = AgentRun.objects.all()
    assert (run.outcome, run.calls, run.degraded) == ("cancelled", 0, 0)
    item = series(key)
    assert (item["cancelled"], item["runs"], item["calls"]) == (1, 0, 0)


def test_a_timeout_is_no_cancellation(key: ApiKey) -> None:
    receive_spans(
        key.project_id,
        read_spans(
            traces(span({"error.type": "APITimeoutError"}, is_error=True)).SerializeToString()
        ),
    )
    assert list(Event.objects.values_list("kind", flat=True)) == ["provider_error"]


READER: dict[str, Any] = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "gpt-4o",
    "llm.output_messages.0.message.content": '{"steps": ["a',
}


@pytest.mark.parametrize(
    ("scope", "more", "kind"),
    [
        ("openinference.instrumentation.groq", {}, "cancelled"),
        # Something says how the answer ended.
        ("openinference.instrumentation.groq", {"llm.token_count.completion": 9}, "parse_invalid"),
        ("openinference.instrumentation.groq", {"llm.finish_reason": "length"}, "parse_invalid"),
        # A span by hand need not say it.
        ("my.agent", {}, "parse_invalid"),
        # Not cut off.
        (
            "openinference.instrumentation.groq",
            {"llm.output_messages.0.message.content": "{}"},
            "parse_invalid",
        ),
    ],
)
def test_a_stream_that_its_reader_closed_is_cancelled(
    key: ApiKey, scope: str, more: dict[str, Any], kind: str
) -> None:
    register_schema(key.project, "chat", PLAN, None)
    call = span()
    del call.attributes[:]
    call.attributes.extend(key_values({**READER, **more}))
    receive_spans(key.project_id, read_spans(traces(call, scope=scope).SerializeToString()))
    assert list(Event.objects.values_list("kind", flat=True)) == [kind]
