"""The page of a run that only events tell of."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.figures import DASH
from diagnostics.ingest.recording import record
from failsoft.events import PostedEvent
from tests.agents.console.conftest import Read
from tests.diagnostics.builders import degraded, succeeded, wire_event

TRIP = "graph.trip.succeeded"


def send(project: Project, *events: dict[str, Any], reference: str = "agent-7") -> None:
    at = clock.now().isoformat()
    told = {"correlation_id": reference, "occurred_at": at}
    record(project.pk, [PostedEvent.model_validate({**event, **told}) for event in events])


def test_a_degraded_run_is_shown_like_a_goal(project: Project, read: Read) -> None:
    first = wire_event(raw_output_preview='{"a": 1}', attributes={"region": "eu"})
    second = wire_event(attempt=2, raw_output_preview='{"a": 2}', release="r1")
    send(project, first, second, degraded())
    html = read("/runs/agent-7/")
    assert "Degraded after 2 attempts: next step parse failed" in html
    assert "1 · not_json" in html
    assert "1 change from attempt 1" in html
    assert "expected an object" in html
    assert "<dd>r1</dd>" in html
    assert ">region<" in html
    assert "/export/events.ndjson?range=90d&amp;correlation_id=agent-7" in html


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([succeeded()], "Valid at the first attempt"),
        ([wire_event(), succeeded(attempt=2)], "Recovered after 2 attempts"),
        ([wire_event()], "1 attempt, none valid so far"),
        ([degraded(status="stubbed")], "stub plan used"),
        ([succeeded(), succeeded(name=TRIP)], "Valid at the first attempt"),
        (
            [
                succeeded(),
                wire_event(name="graph.trip.parse_invalid"),
                succeeded(name=TRIP, attempt=2),
            ],
            "Recovered after 2 attempts",
        ),
    ],
    ids=["good", "repaired", "open", "stubbed", "two good", "one of two repaired"],
)
def test_the_first_line_says_how_it_stands(
    project: Project, read: Read, events: list[dict[str, Any]], told: str
) -> None:
    send(project, *events)
    assert told in read("/runs/agent-7/")


def test_the_box_at_the_top_finds_it(project: Project, client: Client) -> None:
    send(project, succeeded())
    found = client.get("/find/", {"reference": "agent-7"})
    assert found["Location"] == "/runs/agent-7/"


def test_a_reference_that_cannot_stand_in_a_path_is_shown_in_its_place(
    project: Project, read: Read
) -> None:
    send(project, succeeded(), reference="a/../b ?#")
    assert "Valid at the first attempt" in read("/find/", reference="a/../b ?#")


def test_a_correlation_id_may_hold_slashes(project: Project, client: Client, read: Read) -> None:
    send(project, succeeded(input_tokens=5, source="bot"), reference="bot/7")
    html = read("/runs/bot/7/")
    assert "Reported by an external agent." in html
    assert "</svg>First pass</span>" in html
    assert "<dt>Duration</dt>" in html
    assert client.get("/find/", {"reference": "bot/7"})["Location"] == "/runs/bot/7/"


def test_the_old_address_leads_to_the_run(project: Project, client: Client) -> None:
    send(project, succeeded())
    assert client.get("/goals/agent-7/?from=2")["Location"] == "/runs/agent-7/?from=2"
    assert client.get("/goals/agent-8/").status_code == 404


def test_events_of_another_project_are_not_found(client: Client) -> None:
    send(Project.objects.create(slug="other", name="Other"), succeeded())
    assert client.get("/runs/agent-7/").status_code == 404


def test_hostile_events_stay_text(project: Project, read: Read) -> None:
    nasty = "<script>alert(1)</script>"
    send(
        project,
        wire_event(
            model=nasty,
            source=nasty,
            raw_output_preview=nasty,
            validation_errors=[{"path": nasty, "message": nasty}],
            attributes={"x": nasty},
        ),
    )
    assert nasty not in read("/runs/agent-7/")


def test_query_count_does_not_grow_with_the_events(
    project: Project, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    send(project, *(wire_event(attempt=number) for number in range(1, 6)))
    # Session, user, memberships, goal, events, details, failure groups, banner; the run's
    # row, prices and tokens.
    with django_assert_num_queries(11):
        client.get("/runs/agent-7/")


def test_tokens_that_nobody_reported_are_not_zero(project: Project, read: Read) -> None:
    send(project, succeeded())
    assert "<dd>not reported</dd>" in read("/runs/agent-7/")
    assert "0 tokens" not in read("/runs/agent-7/")
    assert f'data-label="tokens">{DASH}<' in read("/runs/")
    send(project, succeeded(input_tokens=5, output_tokens=2), reference="agent-8")
    assert "<dd>5 → 2</dd>" in read("/runs/agent-8/")
