"""`failsoft.run` against a server: attempts are one run, and what an agent tells is kept."""

import json
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from pydantic import BaseModel, Field, field_validator
from pytest_django.live_server_helper import LiveServer

import failsoft
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.span_runs import settle_runs
from diagnostics.store.models import Event, EventPayload
from diagnostics.store.partitions import ensure_partitions
from diagnostics.store.run_models import AgentRun
from failsoft.telemetry.connection import ServerAddress
from failsoft.telemetry.runs import send_with
from failsoft.telemetry.sending import OtelSending
from failsoft.telemetry.setup import Setup

pytestmark = pytest.mark.django_db(transaction=True)


class Trip(BaseModel):
    city: str
    days: int = Field(ge=1)

    @field_validator("city")
    @classmethod
    def _must_exist(cls, city: str) -> str:
        if city == "Atlantis":
            raise ValueError("no such city")
        return city


@pytest.fixture
def project(transactional_db: None) -> Project:
    ensure_partitions()
    return Project.objects.create(slug="p", name="P")


@pytest.fixture
def provider(project: Project, live_server: LiveServer) -> Iterator[TracerProvider]:
    key = issue_key(project, "agent", [Scope.INGEST]).text
    provider = TracerProvider(shutdown_on_exit=False)
    send_with(OtelSending(Setup(ServerAddress(live_server.url, key)), provider))
    yield provider
    send_with(None)
    provider.shutdown()


def answer(provider: TracerProvider, text: str) -> str:
    """Do what an instrumented client does when a model answers."""
    message = {"role": "assistant", "parts": [{"type": "text", "content": text}]}
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5-mini",
        "gen_ai.output.messages": json.dumps([message]),
    }
    with provider.get_tracer("client").start_as_current_span("chat", attributes=told):
        return text


def plan(provider: TracerProvider, *texts: str) -> None:
    """Ask until an answer is valid, as a loop of one's own does."""
    with failsoft.run(node="trip", prompt_version="7", schema=Trip) as run:
        for text in texts:
            found = failsoft.recover(answer(provider, text), schema=Trip)
            if not isinstance(found, failsoft.RefusedAnswer):
                return
            run.invalid(found)


def test_attempts_inside_are_one_run(project: Project, provider: TracerProvider) -> None:
    plan(
        provider, "Sure! Go to Oslo.", '{"city": "Oslo", "days": 0}', '{"city": "Oslo", "days": 3}'
    )
    provider.force_flush()
    settle_runs()
    run = AgentRun.objects.get(project=project)
    assert (run.outcome, run.attempts, run.nodes) == ("recovered", 3, ["trip"])
    events = Event.objects.filter(project=project).order_by("attempt")
    assert [(event.kind, event.parse_error_type) for event in events] == [
        ("parse_invalid", "not_json"),
        ("parse_invalid", "schema_invalid"),
        ("succeeded", None),
    ]
    assert {event.prompt_version for event in events} == {"7"}


def test_what_a_schema_cannot_say_is_told_by_the_agent(
    project: Project, provider: TracerProvider
) -> None:
    plan(provider, '{"city": "Atlantis",\n "days": 3}', '{"city": "Oslo", "days": 3}')
    provider.force_flush()
    settle_runs()
    assert AgentRun.objects.get(project=project).outcome == "recovered"
    [failed] = Event.objects.filter(project=project, kind="parse_invalid")
    [error] = EventPayload.objects.get(event_id=failed.event_id).validation_errors
    assert (error["path"], error["line"]) == ("/city", 1)
    assert "no such city" in error["message"]


def test_a_run_that_ends_with_an_invalid_answer_is_degraded(
    project: Project, provider: TracerProvider
) -> None:
    @failsoft.run(node="trip")
    def plan_once() -> None:
        Trip.model_validate_json(answer(provider, '{"city": "Oslo", "days": 0}'))

    with pytest.raises(ValueError, match="days"):
        plan_once()
    provider.force_flush()
    settle_runs()
    run = AgentRun.objects.get(project=project)
    assert (run.outcome, run.attempts) == ("degraded", 1)


def test_two_runs_in_a_trace_of_the_host_are_two(
    project: Project, provider: TracerProvider
) -> None:
    with provider.get_tracer("web").start_as_current_span("POST /trips"):
        plan(provider, "Sure!", '{"city": "Oslo", "days": 3}')
        plan(provider, '{"city": "Riga", "days": 2}')
    provider.force_flush()
    settle_runs()
    runs = AgentRun.objects.filter(project=project).order_by("began_at")
    assert [(run.outcome, run.attempts) for run in runs] == [("recovered", 2), ("ok_first", 1)]
