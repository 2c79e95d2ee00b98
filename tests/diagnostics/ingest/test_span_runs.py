"""Runs told by spans are judged like runs that were posted."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import ApiKey, Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest import span_runs
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.models import AgentSpan, UnplacedCall
from diagnostics.ingest.otlp.protobuf import read_logs, read_spans
from diagnostics.ingest.receiving import receive_logs, receive_spans
from diagnostics.ingest.recording import record
from diagnostics.ingest.span_runs import forget_old_spans, settle_runs
from diagnostics.metrics import read_counts
from diagnostics.store import aggregation
from diagnostics.store.models import Event
from diagnostics.store.run_models import AgentRun, RunOutcome
from failsoft.events import PostedEvent
from tests.diagnostics.builders import degraded, succeeded, wire_event
from tests.diagnostics.otlp_bodies import MILLISECOND_NS, log_record, logs, span, traces
from tests.diagnostics.store.test_folding import counted, recount

pytestmark = pytest.mark.django_db
GRAINS = ("minute", "hour", "day", "hour_by_version", "day_by_version")
SECOND_NS = 1000 * MILLISECOND_NS
# What became of the calls of 14 runs: good, not JSON, or no answer for want of time. Of a
# silent one (s) nobody says anything.
RUNS = (*("g", "g", "g", "g", "g", "g"), *("xg", "xg", "xxg", "tg"), *("xxx", "xxx", "xt", "t"))
DEGRADED = {"x": "planner_parse_failed", "t": "timeout"}
MESSAGES = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "{}"}]}])
TOLD = {
    "g": {"gen_ai.output.type": "json", "gen_ai.output.messages": MESSAGES},
    "x": {"failsoft.parse_error_type": "not_json"},
    "t": {"error.type": "timeout"},
    "s": {},
}


@pytest.fixture
def key() -> ApiKey:
    project = Project.objects.create(slug="p", name="P")
    return issue_key(project, "agent", [Scope.INGEST]).row


def now_ns() -> int:
    return int((clock.now() - timedelta(minutes=10)).timestamp()) * SECOND_NS


class Trace:
    """The spans of one run: its calls one after the other, and the agent's around them."""

    def __init__(self, outcomes: str, start_ns: int | None = None) -> None:
        self.trace_id, self.outcomes = uuid4().hex, outcomes
        self.start_ns = start_ns or now_ns()
        self.calls = [self._call(place, word) for place, word in enumerate(outcomes)]
        self.root = span(
            {"gen_ai.operation.name": "invoke_agent"},
            trace_id=self.trace_id,
            span_id="a" * 16,
            start_ns=self.start_ns,
            end_time_unix_nano=self.start_ns + 100 * SECOND_NS,
        )

    def _call(self, place: int, word: str) -> Span:
        return span(
            {"failsoft.node": "planner", **TOLD[word]},
            trace_id=self.trace_id,
            span_id=f"{place + 1:016x}",
            start_ns=self.start_ns + 2 * place * SECOND_NS,
            parent_span_id=bytes.fromhex("a" * 16),
        )


def send(key: ApiKey, *spans: Span) -> None:
    receive_spans(key.project_id, read_spans(traces(*spans).SerializeToString()))


def make_due() -> None:
    AgentRun.objects.exclude(settles_at=None).update(settles_at=clock.now())


def settle() -> int:
    make_due()
    return settle_runs()


def posted(project: Project, runs: Sequence[str], start_ns: int) -> None:
    """Tell the same runs as an agent that posts its events."""
    for outcomes in runs:
        run = Trace(outcomes, start_ns)
        common: dict[str, Any] = {
            "correlation_id": run.trace_id,
            "provider": "anthropic",
            "model": "claude-haiku-4",
            "environment": "prod",
            "source": "support-bot",
            "release": "2026.11.20-2",
        }
        for attempt, (word, call) in enumerate(zip(outcomes, run.calls, strict=True), start=1):
            at = clock.now().fromtimestamp(call.end_time_unix_nano / 1e9, clock.now().tzinfo)
            told = {**common, "event_id": str(uuid4()), "occurred_at": at.isoformat()}
            told |= {"attempt": attempt, "latency_ms": 1840}
            told |= {"input_tokens": 911, "output_tokens": 512, "finish_reason": "stop"}
            names = {"g": "succeeded", "x": "parse_invalid", "t": "provider_error"}
            made = wire_event if word == "x" else succeeded
            if word == "t":
                told["attributes"] = {"call_error_type": "timeout"}
            record_one(project, made(**told, name=f"graph.planner.{names[word]}"))
        if outcomes[-1] != "g":
            ending = {"attempts": len(outcomes), "reason": DEGRADED[outcomes[-1]]}
            end = {**common, "occurred_at": at.isoformat(), **ending}
            record_one(project, degraded(**end, name="graph.planner.degraded"))


def record_one(project: Project, wire: dict[str, Any]) -> None:
    record(project.pk, [PostedEvent.model_validate(wire)])


def measures(project: Project) -> list[tuple[Any, ...]]:
    columns = ("bucket", "series_id", "project_id")
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM diagnostics_rollup_hour WHERE project_id = %s", [project.pk])
        names = [column.name for column in cursor.description]
        return [
            tuple((n, v) for n, v in zip(names, row, strict=True) if n not in columns)
            for row in cursor.fetchall()
        ]


def outcomes_of(project: Project) -> list[tuple[str, int, int]]:
    runs = AgentRun.objects.filter(project=project)
    return sorted(runs.values_list("outcome", "attempts", "calls"))


def test_a_span_that_stands_twice_in_a_request_is_one_call(key: ApiKey) -> None:
    run = Trace("xg")
    send(key, *run.calls, *run.calls)
    settle()
    row = AgentRun.objects.get()
    assert (row.calls, row.outcome, row.attempts) == (2, RunOutcome.RECOVERED, 2)


def test_the_same_runs_told_by_spans_and_posted_give_the_same_series(key: ApiKey) -> None:
    start = now_ns()
    other = Project.objects.create(slug="rest", name="REST")
    posted(other, RUNS, start)
    for outcomes in RUNS:
        run = Trace(outcomes, start)
        send(key, *run.calls)
        send(key, run.root)
    assert settle_runs() == 14
    aggregation.fold()
    assert measures(key.project) == measures(other)
    assert outcomes_of(key.project) == outcomes_of(other)
    counts = dict(measures(key.project)[0])
    assert (counts["runs"], counts["ok_first"], counts["repaired"]) == (14, 6, 4)
    assert (counts["degraded"], counts["timed_out"], counts["good_3"]) == (4, 2, 1)
    for grain in GRAINS:
        assert counted(grain) == recount(), grain


@pytest.mark.parametrize("order", ["forth", "back", "one by one", "twice"])
def test_neither_order_nor_batches_nor_repetition_change_a_run(key: ApiKey, order: str) -> None:
    run = Trace("xxg")
    spans = [*run.calls, run.root]
    if order == "back":
        send(key, *reversed(spans))
    elif order == "one by one":
        for one in reversed(spans):
            send(key, one)
            settle()
    else:
        for _ in range(2 if order == "twice" else 1):
            send(key, *spans)
            settle()
    settle()
    aggregation.fold()
    (run_row,) = AgentRun.objects.all()
    assert (run_row.outcome, run_row.attempts, run_row.calls) == (RunOutcome.RECOVERED, 3, 3)
    attempts = Event.objects.order_by("occurred_at").values_list("kind", "attempt", "cycle")
    expected = [("parse_invalid", 1, 1), ("parse_invalid", 2, 1), ("succeeded", 3, 1)]
    assert list(attempts) == expected
    for grain in GRAINS:
        assert counted(grain) == recount(), grain


def test_a_call_counts_as_a_run_only_once_its_run_is_over(key: ApiKey) -> None:
    run = Trace("g")
    send(key, *run.calls)
    aggregation.fold()
    assert (counted("hour")["attempts"], counted("hour")["runs"]) == (1, 0)
    assert AgentRun.objects.get().outcome == RunOutcome.OPEN
    # Neither the root span nor the quiet time.
    assert settle_runs() == 0
    send(key, run.root)
    assert settle_runs() == 1
    aggregation.fold()
    assert (counted("hour")["attempts"], counted("hour")["runs"]) == (1, 1)
    assert settle_runs() == 0


def test_without_a_root_span_a_run_is_over_after_quiet_time(
    key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(key, *Trace("x").calls)
    due = AgentRun.objects.get().settles_at
    assert due is not None
    assert timedelta(0) < due - clock.now() <= timedelta(minutes=2)
    monkeypatch.setattr(clock, "now", lambda: due)
    assert settle_runs() == 1
    assert AgentRun.objects.get().outcome == RunOutcome.DEGRADED


def test_a_late_span_corrects_a_run_once(key: ApiKey) -> None:
    run = Trace("xg")
    late = run.calls.pop()
    send(key, *run.calls, run.root)
    settle()
    aggregation.fold()
    assert AgentRun.objects.get().outcome == RunOutcome.DEGRADED
    totals = read_counts(None)
    for _ in range(2):
        send(key, late)
        settle()
    aggregation.fold()
    assert AgentRun.objects.get().outcome == RunOutcome.RECOVERED
    assert not Event.objects.filter(kind="degraded").exists()
    assert not UnplacedCall.objects.filter(is_end=True).exists()
    for grain in GRAINS:
        assert counted(grain) == recount(), grain
    assert (counted("hour")["runs"], counted("hour")["repaired"]) == (1, 1)
    # A counter never goes down.
    assert read_counts(None) != totals


@pytest.mark.parametrize(
    ("outcomes", "text", "corrected"),
    [
        ("s", '{"steps": 1}', RunOutcome.DEGRADED),
        ("sg", '{"steps": 1}', RunOutcome.RECOVERED),
        ("s", '{"steps": []}', RunOutcome.OK_FIRST),
        ("s", '```json\n{"steps": []}\n```', RunOutcome.OK_FIRST),
        ("xs", '{"steps": []}', RunOutcome.RECOVERED),
    ],
)
@pytest.mark.parametrize("is_judged", [True, False])
def test_a_log_record_that_comes_after_its_span_corrects_the_run(
    key: ApiKey, outcomes: str, text: str, corrected: RunOutcome, *, is_judged: bool
) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"steps": {"type": "array"}}}
    register_schema(key.project, "planner", schema, "3")
    run = Trace(outcomes)
    send(key, *run.calls, run.root)
    if is_judged:
        settle()
        assert AgentRun.objects.get().outcome == RunOutcome.UNCHECKED
    answer = {"index": 0, "finish_reason": "stop", "message": {"content": text}}
    told, span_id = {"failsoft.node": "planner"}, f"{outcomes.index('s') + 1:016x}"
    late = log_record("gen_ai.choice", told, answer, run.trace_id, span_id)
    for _ in range(2):
        receive_logs(key.project_id, read_logs(logs(late).SerializeToString()))
        settle()
    aggregation.fold()
    assert AgentRun.objects.get().outcome == corrected
    assert not Event.objects.exclude(unchecked=None).exists()
    for grain in GRAINS:
        assert counted(grain) == recount(), grain


def test_an_end_that_the_agent_tells_is_not_told_twice(key: ApiKey) -> None:
    run = Trace("xx")
    told = {"failsoft.kind": "degraded", "failsoft.attempts": 2, "failsoft.reason": "timeout"}
    run.root.attributes.extend(span(told).attributes)
    send(key, *run.calls, run.root)
    settle()
    assert list(Event.objects.filter(kind="degraded").values_list("reason", flat=True)) == [
        "timeout"
    ]


def test_an_attempt_that_the_agent_tells_is_taken_as_it_is(key: ApiKey) -> None:
    run = Trace("g")
    run.calls[0].attributes.extend(span({"failsoft.attempt": 2}).attributes)
    send(key, *run.calls, run.root)
    assert AgentRun.objects.get().outcome == RunOutcome.RECOVERED
    assert settle() == 0


def test_a_settling_that_is_killed_has_done_nothing(
    key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Trace("xx")
    send(key, *run.calls, run.root)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("diagnostics.ingest.span_runs.rebuild_runs", die)
        with pytest.raises(KeyboardInterrupt):
            settle_runs()
    assert not Event.objects.filter(kind="degraded").exists()
    assert settle_runs() == 1
    aggregation.fold()
    assert counted("hour") == recount()


def test_spans_are_forgotten_after_a_day(key: ApiKey, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Trace("xx")
    send(key, *run.calls, run.root)
    settle()
    assert (UnplacedCall.objects.count(), AgentSpan.objects.count()) == (3, 1)
    assert forget_old_spans() == 0
    tomorrow = clock.now() + timedelta(days=1, seconds=1)
    monkeypatch.setattr(clock, "now", lambda: tomorrow)
    assert forget_old_spans() == 4


def test_runs_of_one_project_that_fail_or_are_many_delay_no_other(
    key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = issue_key(Project.objects.create(slug="p2", name="P2"), "k", list(Scope)).row
    for sender in (key, key, other):
        run = Trace("xg")
        send(sender, *run.calls, run.root)
    monkeypatch.setattr(span_runs, "SETTLED_AT_ONCE", 1)
    assert [settle_runs(), settle_runs(), settle_runs()] == [2, 1, 0]

    AgentRun.objects.update(settles_at=clock.now())
    settle_one = span_runs._settle

    def fail_for_one(project_id: int, ids: Sequence[str]) -> None:
        if project_id == key.project_id:
            raise ZeroDivisionError
        settle_one(project_id, ids)

    monkeypatch.setattr(span_runs, "_settle", fail_for_one)
    assert settle_runs() == 1
