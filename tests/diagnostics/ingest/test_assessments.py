"""Late outcomes: a valid answer that was said to be bad counts once, under its run."""

import json
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.models import KeyMinute
from diagnostics.ingest.recording import record
from diagnostics.purge import purge_correlation, purge_project
from diagnostics.store.run_models import Assessment
from diagnostics.store.runs import forget_old_runs
from failsoft.events import PostedEvent
from tests.diagnostics import otlp_bodies as bodies
from tests.diagnostics.builders import degraded, succeeded
from tests.failsoft.redaction.made_up import make

pytestmark = pytest.mark.django_db
SECOND_NS = 1000 * bodies.MILLISECOND_NS
RESULT = "gen_ai.evaluation.result"
FAILED = {"gen_ai.evaluation.name": "Relevance", "gen_ai.evaluation.score.label": "fail"}
PASSED = {**FAILED, "gen_ai.evaluation.score.label": "pass"}
OTHER_SPAN = "b7ad6b7169203332"


class Agent:
    """Whoever holds a key of a project: posts, and reads what came of it."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.key = issue_key(project, "k", [Scope.INGEST, Scope.READ]).text
        self.headers = {"Authorization": f"Bearer {self.key}"}

    def post(self, *items: dict[str, Any]) -> Any:
        sent = json.dumps(items)
        path = "/api/v1/outcomes"
        return (
            Client().post(path, sent, content_type="application/json", headers=self.headers).json()
        )

    def export(self, request: Any, path: str = "/v1/traces") -> Any:
        sent = bodies.as_json(request)
        answer = Client().post(path, sent, content_type="application/json", headers=self.headers)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def get(self, path: str, **asked: str) -> Any:
        answer = Client().get(f"/api/v1/{path}", asked, headers=self.headers)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def run(self, reference: str = "run-1") -> tuple[str | None, bool]:
        shown = self.get(f"runs/{reference}")
        return shown["assessed"], shown["valid_but_worse"]

    def series(self) -> tuple[int, int]:
        (item,) = self.get("series")["items"]
        return item["valid_but_worse"], item["assessed"]

    def acts(self, *events: dict[str, Any]) -> None:
        told = [{"occurred_at": clock.now().isoformat(), **event} for event in events]
        record(self.project.pk, [PostedEvent.model_validate(event) for event in told])


@pytest.fixture
def agent() -> Agent:
    return Agent(Project.objects.create(slug="p", name="P"))


def said(verdict: str = "bad", minutes: int = 0, **changes: object) -> dict[str, Any]:
    at = clock.now().replace(second=0, microsecond=0) + timedelta(minutes=minutes)
    told: dict[str, Any] = {"correlation_id": "run-1", "verdict": verdict, "source": "user"}
    return {**told, "at": at.isoformat(), **changes}


def run(reference: str = "run-1", **changes: Any) -> dict[str, Any]:
    at = clock.now().isoformat()
    return succeeded(correlation_id=reference, occurred_at=at, **changes)


def call(attributes: dict[str, Any] | None = None, **changes: Any) -> Any:
    """A span of a first attempt that began a minute ago."""
    start_ns = int((clock.now() - timedelta(minutes=1)).timestamp()) * SECOND_NS
    told = {"failsoft.attempt": 1, **(attributes or {})}
    return bodies.span(told, start_ns=start_ns, **changes)


def test_a_valid_answer_that_is_said_to_be_bad_is_valid_but_worse(agent: Agent) -> None:
    agent.acts(run(), run("run-2"), run("run-3"))
    agent.post(said(), said("good", correlation_id="run-2"))
    assert agent.run() == ("bad", True)
    assert agent.run("run-2") == ("good", False)
    assert agent.run("run-3") == (None, False)
    (item,) = agent.get("series")["items"]
    assert (item["runs"], item["degraded"]) == (3, 0)
    assert (item["valid_but_worse"], item["assessed"]) == (1, 2)
    assert item["valid_but_worse_rate"] == 0.5
    assert item["valid_but_worse_low"] < 0.5 < item["valid_but_worse_high"]


def test_the_same_judgement_twice_counts_once(agent: Agent) -> None:
    agent.acts(run())
    once, twice = said(), said(score=0.1, source="judge")
    assert agent.post(once, twice, once)["accepted"] == 2
    again = agent.post(once, twice)
    assert (again["accepted"], again["duplicates"]) == (0, 2)
    assert agent.series() == (1, 1)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_later_judgement_of_a_judge_counts_whatever_comes_first(
    agent: Agent, order: tuple[int, int]
) -> None:
    agent.acts(run())
    told = [said("bad"), said("good", minutes=5)]
    for place in order:
        agent.post(told[place])
    assert agent.run() == ("good", False)
    assert agent.series() == (0, 1)


def test_two_verdicts_of_one_judge_and_moment_are_a_conflict(agent: Agent) -> None:
    assert agent.post(said("bad"))["accepted"] == 1
    answer = agent.post(said("good"))
    assert answer["rejected"] == 1
    assert answer["results"][0]["status"] == "conflict"
    assert Assessment.objects.get().verdict == "bad"


def test_one_judge_who_says_bad_is_enough(agent: Agent) -> None:
    agent.acts(run())
    agent.post(said("good"), said("bad", source="judge"))
    assert agent.run() == ("bad", True)
    assert agent.series() == (1, 1)


def test_a_judgement_of_a_run_that_is_not_known_yet_waits_for_it(agent: Agent) -> None:
    assert agent.post(said())["accepted"] == 1
    assert agent.get("runs")["items"] == []
    agent.acts(run())
    assert agent.run() == ("bad", True)
    assert agent.series() == (1, 1)


def test_a_degraded_run_that_is_said_to_be_bad_is_degraded_only(agent: Agent) -> None:
    agent.acts(degraded(correlation_id="run-1", occurred_at=clock.now().isoformat()))
    agent.post(said())
    assert agent.run() == ("bad", False)
    assert agent.series() == (0, 0)


def test_runs_are_listed_by_what_was_said_of_them(agent: Agent) -> None:
    agent.acts(run(), run("run-2"), run("run-3"))
    agent.post(said(), said("good", source="judge"), said("good", correlation_id="run-2"))
    listed = {
        verdict: [one["correlation_id"] for one in agent.get("runs", assessed=verdict)["items"]]
        for verdict in ("bad", "good")
    }
    assert listed == {"bad": ["run-1"], "good": ["run-2"]}


def test_a_run_counts_in_the_series_of_each_of_its_nodes(agent: Agent) -> None:
    plan = run(name="graph.plan.succeeded")
    agent.acts(run(), plan, run("run-2", model="m-2"))
    agent.post(said(), said("good", correlation_id="run-2"))
    counted = {
        (item["node"], item["model"]): (item["valid_but_worse"], item["assessed"])
        for item in agent.get("series")["items"]
    }
    assert counted == {
        ("next_step", "fake-1"): (1, 1),
        ("plan", "fake-1"): (1, 1),
        ("next_step", "m-2"): (0, 1),
    }
    (one,) = agent.get("series", node="plan")["items"]
    assert one["assessed"] == 1


def test_a_reason_is_redacted_and_cut(agent: Agent) -> None:
    secret = make("sk-proj-{alnum:48}", Random("reason"))[0]
    agent.acts(run())
    agent.post(said(reason=f"it printed {secret} " + "x" * 5_000, score=0.25))
    (shown,) = agent.get("runs/run-1")["assessments"]
    assert shown["reason"].startswith("it printed [REDACTED:")
    assert len(shown["reason"]) == 1_000
    assert (shown["source"], shown["verdict"], shown["score"]) == ("user", "bad", 0.25)


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "meh"},
        {"verdict": None},
        {"at": "yesterday"},
        {"source": ""},
        {"score": "high"},
        {"minute": "2026-11-21T14:32:00Z"},
    ],
)
def test_what_is_no_judgement_is_refused_and_the_rest_is_kept(
    agent: Agent, changes: dict[str, Any]
) -> None:
    answer = agent.post({**said(), **changes}, said(source="judge"))
    assert (answer["accepted"], answer["rejected"]) == (1, 1)
    assert list(Assessment.objects.values_list("source", flat=True)) == ["judge"]


def test_counts_and_judgements_may_come_in_one_batch(agent: Agent) -> None:
    minute = clock.now().replace(second=0, microsecond=0).isoformat()
    counts = {"minute": minute, "source": "bot", "node": "plan", "ok_first": 2}
    answer = agent.post(said(), counts, {"node": 1}, said("good", source="judge"))
    assert (answer["accepted"], answer["rejected"]) == (3, 1)
    assert [one["index"] for one in answer["results"]] == [2]


def test_a_judgement_is_of_the_project_of_its_key(agent: Agent) -> None:
    other = Agent(Project.objects.create(slug="o", name="O"))
    agent.acts(run())
    other.post(said())
    assert agent.run() == (None, False)
    assert agent.series() == (0, 0)


def test_judgements_go_with_their_run_their_project_and_their_age(
    agent: Agent, settings: Any
) -> None:
    agent.acts(run())
    agent.post(said(), said(correlation_id="run-2"), said(correlation_id="run-3"))
    purge_correlation(agent.project.pk, "run-1")
    assert set(Assessment.objects.values_list("correlation_id", flat=True)) == {"run-2", "run-3"}
    old = clock.now() - timedelta(days=settings.FAILSOFT_KEEP_EVENT_DAYS + 1)
    Assessment.objects.filter(correlation_id="run-2").update(received_at=old)
    forget_old_runs()
    assert Assessment.objects.get().correlation_id == "run-3"
    purge_project(agent.project)
    assert not Assessment.objects.exists()


TOLD: dict[str, Callable[[Agent], Any]] = {
    "event of the span": lambda agent: agent.export(bodies.traces(call(events=[(RESULT, FAILED)]))),
    "log record after the span": lambda agent: (
        agent.export(bodies.traces(call())),
        agent.export(bodies.logs(bodies.log_record(RESULT, FAILED)), "/v1/logs"),
    ),
    "log record before the span": lambda agent: (
        agent.export(bodies.logs(bodies.log_record(RESULT, FAILED)), "/v1/logs"),
        agent.export(bodies.traces(call())),
    ),
    "span of its own below the call": lambda agent: agent.export(
        bodies.traces(
            call(),
            bodies.span(
                FAILED,
                span_id=OTHER_SPAN,
                parent_span_id=bytes.fromhex(bodies.SPAN),
                name="evaluate",
            ),
        )
    ),
}


@pytest.mark.parametrize("way", TOLD)
def test_an_evaluation_in_telemetry_is_a_late_outcome(agent: Agent, way: str) -> None:
    TOLD[way](agent)
    TOLD[way](agent)
    assert agent.run(bodies.TRACE) == ("bad", True)
    assert Assessment.objects.count() == 1
    assert Assessment.objects.get().source == "Relevance"


@pytest.mark.parametrize("comes_first", ["evaluation", "span"])
def test_an_evaluation_finds_the_run_by_the_response_alone(agent: Agent, comes_first: str) -> None:
    reply = {"gen_ai.response.id": "resp-1"}
    spans = bodies.traces(call(attributes={**reply, "failsoft.correlation_id": "run-1"}))
    record = bodies.log_record(RESULT, {**FAILED, **reply}, trace_id="", span_id="")
    exports = [(spans, "/v1/traces"), (bodies.logs(record), "/v1/logs")]
    for request, path in exports if comes_first == "span" else reversed(exports):
        agent.export(request, path)
    assert agent.run() == ("bad", True)


def test_an_evaluation_finds_the_run_of_a_call_whose_first_span_ended_earlier(agent: Agent) -> None:
    reply = {"gen_ai.response.id": "resp-1"}
    inner = call({"failsoft.correlation_id": "run-1"}, span_id=OTHER_SPAN)
    outer = call(reply, end_time_unix_nano=inner.end_time_unix_nano + 100 * bodies.MILLISECOND_NS)
    inner.parent_span_id = outer.span_id
    agent.export(bodies.traces(inner, scope="openai"))
    agent.export(bodies.traces(outer, scope="langchain"))
    record = bodies.log_record(RESULT, {**FAILED, **reply}, trace_id="", span_id="")
    agent.export(bodies.logs(record), "/v1/logs")
    assert agent.run() == ("bad", True)


def test_an_evaluation_before_its_span_moves_to_the_run_the_span_names(agent: Agent) -> None:
    agent.export(bodies.logs(bodies.log_record(RESULT, FAILED)), "/v1/logs")
    agent.export(bodies.traces(call(attributes={"failsoft.correlation_id": "run-1"})))
    assert agent.run() == ("bad", True)
    assert Assessment.objects.get().is_linked


def test_an_evaluation_of_an_agent_call_is_of_the_run_in_its_trace(agent: Agent) -> None:
    agent.export(bodies.traces(call(attributes={"failsoft.correlation_id": "run-1"})))
    agent.export(bodies.logs(bodies.log_record(RESULT, FAILED, span_id=OTHER_SPAN)), "/v1/logs")
    assert agent.run() == ("bad", True)


def test_an_evaluation_of_a_failed_attempt_says_nothing_of_the_answer(agent: Agent) -> None:
    failed = call(attributes={"failsoft.parse_error_type": "not_json"}, events=[(RESULT, FAILED)])
    agent.export(bodies.traces(failed, call(span_id=OTHER_SPAN)))
    assert not Assessment.objects.exists()


def test_each_answer_of_a_run_may_be_evaluated_by_the_same_judge(agent: Agent) -> None:
    first = call(events=[(RESULT, FAILED)])
    second = call(span_id=OTHER_SPAN, events=[(RESULT, PASSED)])
    agent.export(bodies.traces(first, second))
    assert agent.run(bodies.TRACE) == ("bad", True)


@pytest.mark.parametrize(
    ("attributes", "verdict"),
    [
        ({"gen_ai.evaluation.score.label": "not_relevant"}, "bad"),
        ({"gen_ai.evaluation.score.label": "Not Relevant"}, "bad"),
        ({"gen_ai.evaluation.score.label": "PASS"}, "good"),
        ({"gen_ai.evaluation.score.label": "4 stars", "failsoft.verdict": "bad"}, "bad"),
        ({"gen_ai.evaluation.score.label": "fail", "failsoft.verdict": "good"}, "good"),
    ],
)
def test_a_label_says_good_or_bad_and_the_agents_own_word_goes_first(
    agent: Agent, attributes: dict[str, Any], verdict: str
) -> None:
    agent.export(bodies.traces(call(events=[(RESULT, attributes)])))
    assert Assessment.objects.get().verdict == verdict


@pytest.mark.parametrize("label", [{}, {"gen_ai.evaluation.score.label": "4 stars"}])
def test_an_evaluation_that_says_neither_is_told_to_the_sender(
    agent: Agent, label: dict[str, Any]
) -> None:
    told = {**label, "gen_ai.evaluation.score.value": 1.0}
    answer = agent.export(bodies.traces(call(events=[(RESULT, told)])))
    assert "1 evaluations" in answer["partialSuccess"]["errorMessage"]
    assert not Assessment.objects.exists()
    assert KeyMinute.objects.get().not_understood == 1


def test_an_evaluation_that_failed_itself_says_nothing(agent: Agent) -> None:
    told = {**FAILED, "error.type": "timeout"}
    answer = agent.export(bodies.traces(call(events=[(RESULT, told)])))
    assert answer == {}
    assert not Assessment.objects.exists()


def test_an_evaluation_that_names_no_run_is_refused(agent: Agent) -> None:
    record = bodies.log_record(RESULT, FAILED, trace_id="", span_id="")
    answer = agent.export(bodies.logs(record), "/v1/logs")
    assert answer["partialSuccess"]["rejectedLogRecords"] == "1"


def test_an_evaluation_keeps_its_time_score_and_redacted_reason(agent: Agent) -> None:
    secret = make("sk-proj-{alnum:48}", Random("explanation"))[0]
    told = {
        **FAILED,
        "gen_ai.evaluation.score.value": 0.1,
        "gen_ai.evaluation.explanation": f"it shows {secret}",
    }
    span = call(events=[(RESULT, told)])
    span.events[0].time_unix_nano = bodies.START_NS
    agent.export(bodies.traces(span))
    kept = Assessment.objects.get()
    assert kept.score == 0.1
    assert kept.reason is not None
    assert secret not in kept.reason
    assert kept.assessed_at.timestamp() * 1_000_000_000 == pytest.approx(bodies.START_NS)
