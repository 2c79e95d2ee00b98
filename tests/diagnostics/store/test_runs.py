"""A run is one row, the same whatever the order, the batches and the repetitions of its events."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from io import StringIO
from random import Random
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connections, transaction

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.ingest.recording import record
from diagnostics.purge import purge_correlation, purge_marked, purge_project
from diagnostics.store.models import Event
from diagnostics.store.run_models import AgentRun, RunOutcome
from diagnostics.store.runs import forget_old_runs, rebuild_before, rebuild_runs
from failsoft.events import PostedEvent
from tests.diagnostics.builders import AT, degraded, make_event, succeeded
from tests.diagnostics.store.test_folding import chance_events

pytestmark = pytest.mark.django_db
Rows = list[dict[str, Any]]


def good(**changes: object) -> PostedEvent:
    return PostedEvent.model_validate(succeeded(**changes))


def ended(**changes: object) -> PostedEvent:
    return PostedEvent.model_validate(degraded(**changes))


def rows(project: Project) -> Rows:
    runs = AgentRun.objects.filter(project=project).order_by("correlation_id")
    return [{**row} for row in runs.values()]


def rebuilt(project: Project) -> Rows:
    ids = set(Event.objects.filter(project=project).values_list("correlation_id", flat=True))
    AgentRun.objects.filter(project=project).delete()
    rebuild_runs(project.pk, ids)
    return rows(project)


def some_runs(seed: int, count: int, runs: int = 9) -> list[PostedEvent]:
    """Make up events of a few runs, some at the same moment."""
    chance = Random(seed)
    return [
        event.model_copy(
            update={
                "correlation_id": f"run-{chance.randrange(runs)}",
                "node": chance.choice(["plan", "chat", "Zoo"]),
                **({"occurred_at": AT} if chance.random() < 0.3 else {}),
            }
        )
        for event in chance_events(seed, count)
    ]


def test_runs_with_events_ahead_of_the_clock_are_rebuilt_as_they_were(project: Project) -> None:
    chance, now = Random(5), clock.now()
    for event in some_runs(5, 60):
        ahead = now + timedelta(minutes=chance.randrange(400))
        record(project.pk, [event.model_copy(update={"occurred_at": ahead})])
    expected = rows(project)
    assert rebuilt(project) == expected
    assert all(row["ended_at"] < now + timedelta(minutes=6) for row in expected)


def one(project: Project, *events: PostedEvent) -> AgentRun:
    record(project.pk, events)
    return AgentRun.objects.get(project=project)


@pytest.mark.parametrize(
    ("events", "outcome", "attempts"),
    [
        # No event says how it ends.
        ([make_event()], RunOutcome.OPEN, 1),
        ([good()], RunOutcome.OK_FIRST, 1),
        ([make_event(), good(attempt=2)], RunOutcome.RECOVERED, 2),
        ([make_event(), make_event(attempt=2), ended()], RunOutcome.DEGRADED, 2),
        # Only the end was told, with the number of attempts.
        ([ended(attempts=3)], RunOutcome.DEGRADED, 3),
        # One of its answers was never got.
        ([good(), ended(cycle=2), good(cycle=3)], RunOutcome.DEGRADED, 2),
    ],
)
def test_the_outcome_follows_from_how_its_answers_ended(
    project: Project, events: Sequence[PostedEvent], outcome: RunOutcome, attempts: int
) -> None:
    run = one(project, *events)
    assert (run.outcome, run.attempts) == (outcome, attempts)


def test_a_run_adds_up_calls_tokens_time_nodes_and_models(project: Project) -> None:
    later = AT + timedelta(seconds=5)
    first = make_event(latency_ms=1500, input_tokens=10, output_tokens=4, prompt_version="v1")
    second = good(
        name="graph.plan.succeeded",
        occurred_at=later.isoformat(),
        attempt=2,
        model="fake-2",
        input_tokens=20,
        source="bot",
        prompt_version="v2",
    )
    run = one(project, second, first)
    assert (run.began_at, run.ended_at) == (AT - timedelta(milliseconds=1500), later)
    assert (run.calls, run.input_tokens, run.output_tokens) == (2, 30, 4)
    assert run.nodes == ["next_step", "plan"]
    assert run.called_models == ["fake/fake-1", "fake/fake-2"]
    assert (run.model, run.source, run.prompt_version) == ("fake-2", "bot", "v2")


def test_a_run_names_what_failed_in_it_and_the_schema_that_decides(project: Project) -> None:
    later = (AT + timedelta(seconds=5)).isoformat()
    run = one(
        project,
        make_event(parse_error_type="truncated", schema="plan-1"),
        good(attempt=2, occurred_at=later, schema="plan-2"),
    )
    assert (run.kinds, run.schema) == (["parse_invalid", "truncated"], "plan-2")
    assert one(project, ended(cycle=2)).kinds == ["degraded", "parse_invalid", "truncated"]


def test_an_event_that_names_no_model_does_not_decide(project: Project) -> None:
    later = (AT + timedelta(minutes=1)).isoformat()
    run = one(project, good(), good(occurred_at=later, provider=None, model=None, cycle=2))
    assert (run.provider, run.model) == ("fake", "fake-1")


def test_order_batches_and_repetitions_lead_to_the_same_rows(project: Project) -> None:
    events = some_runs(3, 120)
    record(project.pk, events)
    expected = rows(project)
    assert len(expected) == 9
    for seed in range(3):
        other = Project.objects.create(slug=f"o{seed}", name="O")
        shuffled = [*events, *events[:40]]
        Random(seed).shuffle(shuffled)
        for place in range(0, len(shuffled), 7):
            record(other.pk, shuffled[place : place + 7])
        assert [row | {"project_id": project.pk} for row in rows(other)] == expected


def test_a_row_made_anew_from_its_events_is_the_row_that_they_made(project: Project) -> None:
    record(project.pk, some_runs(5, 150))
    expected = rows(project)
    assert rebuilt(project) == expected


def test_a_run_holds_the_first_names_of_many(project: Project) -> None:
    names = [f"m{number:02}" for number in range(20)]
    for name in reversed(names):
        record(project.pk, [good(model=name)])
    (row,) = rows(project)
    assert row["called_models"] == [f"fake/{name}" for name in names[:8]]
    assert rebuilt(project) == [row]


def test_events_of_another_project_make_another_run(project: Project) -> None:
    other = Project.objects.create(slug="o", name="O")
    record(other.pk, [good()])
    record(project.pk, [ended()])
    assert [row["outcome"] for row in rows(project)] == ["degraded"]
    assert [row["outcome"] for row in rows(other)] == ["ok_first"]


def test_what_is_rolled_back_is_in_no_run(project: Project) -> None:
    with transaction.atomic():
        record(project.pk, [good()])
        transaction.set_rollback(True)
    assert rows(project) == []


def test_a_purged_run_has_no_row(project: Project) -> None:
    record(project.pk, some_runs(7, 60))
    assert purge_correlation(project.pk, "run-3")
    assert "run-3" not in [row["correlation_id"] for row in rows(project)]
    assert len(rows(project)) == 8
    purge_project(project)
    assert rows(project) == []


def test_a_run_that_loses_some_of_its_events_is_told_by_the_rest(project: Project) -> None:
    mark = UUID(int=0xABCDEF)
    record(project.pk, [good(), ended(event_id=str(mark))])
    assert purge_marked(project.pk, mark.hex[-6:]) == 1
    assert [row["outcome"] for row in rows(project)] == ["ok_first"]


def test_runs_are_kept_as_long_as_events(project: Project) -> None:
    old = clock.now() - timedelta(days=settings.FAILSOFT_KEEP_EVENT_DAYS, hours=1)
    record(project.pk, [good(occurred_at=old.isoformat(), correlation_id="old")])
    record(project.pk, [good(occurred_at=clock.now().isoformat(), correlation_id="new")])
    assert forget_old_runs() == 1
    assert [row["correlation_id"] for row in rows(project)] == ["new"]


def test_events_from_before_there_were_runs_get_their_rows_piece_by_piece(project: Project) -> None:
    events = some_runs(11, 100, runs=40)
    record(project.pk, events)
    expected = rows(project)
    AgentRun.objects.all().delete()
    # Killed after some pieces, and again after the next.
    reached: datetime = clock.now() + timedelta(minutes=1)
    for most in (5, 1000):
        for _, (before, made) in zip(
            range(most), rebuild_before(project.pk, reached), strict=False
        ):
            assert made
            reached = before
    assert rows(project) == expected


def test_the_command_makes_all_rows_and_says_how_far_it_is(project: Project) -> None:
    record(project.pk, some_runs(17, 30))
    expected = rows(project)
    AgentRun.objects.all().delete()
    output = StringIO()
    call_command("rebuild_runs", "--project", "p", stdout=output)
    assert rows(project) == expected
    assert output.getvalue().startswith("p  20")
    with pytest.raises(CommandError, match="offset"):
        call_command("rebuild_runs", "--before", "2026-11-21T14:00:00")


@pytest.mark.django_db(transaction=True)
def test_batches_that_meet_at_the_same_runs_lose_nothing(project: Project) -> None:
    events = some_runs(13, 400, runs=5)

    def send(seed: int) -> None:
        mine = list(events)
        Random(seed).shuffle(mine)
        for place in range(0, len(mine), 25):
            with transaction.atomic():
                record(project.pk, mine[place : place + 25])
            if seed == 0:
                rebuild_runs(project.pk, [f"run-{number}" for number in range(5)])
        connections.close_all()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(send, range(3)))
    found = rows(project)
    assert sum(row["calls"] + row["degraded"] for row in found) >= 300
    assert rebuilt(project) == found
