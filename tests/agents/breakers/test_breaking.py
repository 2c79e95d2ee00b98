"""Breakers in their rows: one probe for any number of processes, the clock, the history."""

import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from itertools import pairwise
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Event

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agents.breakers import store
from agents.breakers.models import Breaker, BreakerTransition
from agents.breakers.store import BreakerScope, ManualChange, acquire, change_breaker, renew, report
from diagnostics import clock
from diagnostics.accounts.models import Project
from failsoft.retry.breaker import (
    Allowed,
    BreakerKind,
    BreakerState,
    CallVerdict,
    Denied,
    Ticket,
    close,
    isolate,
)
from tests.agents.conftest import let_time_pass
from tests.failsoft.retry.test_breaker import EDGES

GOOD, BAD, NOTHING = CallVerdict.GOOD, CallVerdict.BAD, CallVerdict.NOTHING
PROCESSES = 32


@pytest.fixture(autouse=True)
def _believe_nothing() -> Iterator[None]:
    store.seen_closed.clear()
    yield
    store.seen_closed.clear()


@pytest.fixture
def line(project: Project) -> BreakerScope:
    return BreakerScope(project.pk, "fake", "fake-1", "plan", BreakerKind.TRANSPORT)


def pass_through(line: BreakerScope) -> Ticket:
    admission = acquire(line)
    assert isinstance(admission, Allowed)
    return admission.ticket


def row_of(line: BreakerScope) -> Breaker:
    return Breaker.objects.get(**asdict(line))


def open_it(line: BreakerScope) -> None:
    for _ in range(6):
        report(line, pass_through(line), BAD)
    assert row_of(line).state == "open"


def test_a_good_ladder_at_rest_writes_no_row(line: BreakerScope) -> None:
    quality = BreakerScope(line.project_id, "fake", "fake-1", "plan", BreakerKind.QUALITY)
    report(quality, pass_through(quality), GOOD)
    assert not Breaker.objects.exists()


def test_a_closed_breaker_is_believed_without_a_query(line: BreakerScope) -> None:
    pass_through(line)
    with CaptureQueriesContext(connection) as queries:
        pass_through(line)
    assert len(queries) == 0


def test_what_this_process_opened_it_knows_at_once(line: BreakerScope) -> None:
    open_it(line)
    assert isinstance(acquire(line), Denied)


def test_c15_the_cool_down_ends_by_the_databases_clock(line: BreakerScope) -> None:
    open_it(line)
    until = row_of(line).open_until
    assert until is not None
    assert 10 <= (until - row_of(line).changed_at).total_seconds() <= 12.5
    let_time_pass(9)
    assert isinstance(acquire(line), Denied)
    let_time_pass(4)
    assert pass_through(line).probe == 1


def test_what_the_provider_asks_for_wins(line: BreakerScope) -> None:
    for _ in range(6):
        report(line, pass_through(line), BAD, 120.0)
    let_time_pass(100)
    assert isinstance(acquire(line), Denied)
    let_time_pass(21)
    assert pass_through(line).probe == 1


def test_every_change_is_written_down_with_its_cause(line: BreakerScope) -> None:
    open_it(line)
    let_time_pass(13)
    report(line, pass_through(line), BAD)
    let_time_pass(26)
    report(line, pass_through(line), GOOD)
    report(line, pass_through(line), GOOD)

    history = BreakerTransition.objects.order_by("pk")
    assert [(t.from_state, t.to_state, t.cause, t.actor) for t in history] == [
        ("closed", "open", "faults_in_a_row", ""),
        ("open", "half_open", "cooled_down", ""),
        ("half_open", "open", "probe_failed", ""),
        ("open", "half_open", "cooled_down", ""),
        ("half_open", "closed", "probes_succeeded", ""),
    ]


def test_changes_of_more_than_three_months_ago_are_forgotten(line: BreakerScope) -> None:
    open_it(line)
    BreakerTransition.objects.update(at=clock.now() - timedelta(days=91))
    let_time_pass(13)
    report(line, pass_through(line), BAD)
    kept = BreakerTransition.objects.order_by("pk").values_list("to_state", flat=True)
    assert list(kept) == ["half_open", "open"]


def test_somebody_isolates_and_closes_and_is_named(line: BreakerScope) -> None:
    report(line, pass_through(line), GOOD)
    assert change_breaker(row_of(line).pk, isolate, ManualChange("ada"))
    assert not change_breaker(row_of(line).pk, isolate, ManualChange("ada"))
    let_time_pass(100_000)
    assert isinstance(acquire(line), Denied)
    assert change_breaker(row_of(line).pk, close, ManualChange("grace", "the key was renewed"))
    pass_through(line)

    told = BreakerTransition.objects.order_by("pk").values_list("to_state", "actor")
    assert list(told) == [("isolated", "ada"), ("closed", "grace")]


def test_a_killed_prober_is_followed_by_another(line: BreakerScope) -> None:
    open_it(line)
    let_time_pass(13)
    dead = pass_through(line)
    assert isinstance(acquire(line), Denied)
    let_time_pass(61)
    second = pass_through(line)
    report(line, dead, BAD)

    assert (dead.probe, second.probe) == (1, 2)
    assert row_of(line).state == "half_open"


def test_a_renewed_probe_keeps_its_lease(line: BreakerScope) -> None:
    open_it(line)
    let_time_pass(13)
    ticket = pass_through(line)
    let_time_pass(50)
    renew(line, ticket)
    let_time_pass(50)
    assert isinstance(acquire(line), Denied)
    report(line, ticket, BAD)
    assert row_of(line).state == "open"


def _ask_once(line: BreakerScope, barrier: Barrier, answers: "Queue[int | None]") -> None:
    """What one process does: wait for all the others, then ask."""
    connection.ensure_connection()
    barrier.wait(60)
    admission = acquire(line)
    answers.put(admission.ticket.probe if isinstance(admission, Allowed) else None)
    connections.close_all()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_32_processes_at_half_open_let_exactly_one_through() -> None:
    project = Project.objects.create(slug="many", name="Many")
    line = BreakerScope(project.pk, "fake", "fake-1", "plan", BreakerKind.TRANSPORT)
    open_it(line)
    Breaker.objects.update(open_until=clock.now() - timedelta(seconds=1))
    connections.close_all()
    forked = multiprocessing.get_context("fork")
    barrier, answers = forked.Barrier(PROCESSES), forked.Queue()
    children = [
        forked.Process(target=_ask_once, args=(line, barrier, answers)) for _ in range(PROCESSES)
    ]
    for child in children:
        child.start()
    found = [answers.get(timeout=120) for _ in children]
    for child in children:
        child.join()

    assert sorted(probe for probe in found if probe is not None) == [1]
    assert found.count(None) == PROCESSES - 1
    assert BreakerTransition.objects.filter(to_state="half_open").count() == 1


def _take_a_probe_and_hang(line: BreakerScope, has_it: Event) -> None:
    assert pass_through(line).probe == 1
    has_it.set()
    time.sleep(600)


@pytest.mark.django_db(transaction=True)
def test_a_prober_killed_in_its_call_does_not_stop_the_others() -> None:
    project = Project.objects.create(slug="killed", name="Killed")
    line = BreakerScope(project.pk, "fake", "fake-1", "plan", BreakerKind.TRANSPORT)
    open_it(line)
    Breaker.objects.update(open_until=clock.now() - timedelta(seconds=1))
    connections.close_all()
    forked = multiprocessing.get_context("fork")
    has_it = forked.Event()
    child = forked.Process(target=_take_a_probe_and_hang, args=(line, has_it))
    child.start()
    assert has_it.wait(60)
    child.kill()
    child.join()

    assert isinstance(acquire(line), Denied)
    assert row_of(line).state == "half_open"
    Breaker.objects.update(probe_until=clock.now() - timedelta(seconds=1))
    assert pass_through(line).probe == 2


class AnyCourseOfRows(RuleBasedStateMachine):
    """The rules' machine once more, over the table, by the database's clock."""

    def __init__(self) -> None:
        super().__init__()
        store.seen_closed.clear()
        BreakerTransition.objects.all().delete()
        Breaker.objects.all().delete()
        project, _ = Project.objects.get_or_create(slug="any", name="Any")
        self.line = BreakerScope(project.pk, "fake", "fake-1", "plan", BreakerKind.TRANSPORT)
        self.out: list[Ticket] = []
        self.newest_probe = 0

    @property
    def row(self) -> Breaker:
        """The row, or what stands for one that is not there yet."""
        found = Breaker.objects.filter(**asdict(self.line)).first()
        return found or Breaker(**asdict(self.line))

    @rule(seconds=st.integers(1, 130))
    def time_passes(self, seconds: int) -> None:
        let_time_pass(seconds)

    @rule()
    def another_process_asks(self) -> None:
        store.seen_closed.clear()
        self.somebody_asks()

    @rule()
    def somebody_asks(self) -> None:
        before, now = self.row, clock.now()
        match acquire(self.line):
            case Denied(seconds):
                assert before.state != BreakerState.CLOSED
                assert 0 < seconds <= store.policy().longest_wait_seconds
            case Allowed(ticket):
                assert before.state != BreakerState.ISOLATED
                if before.open_until is not None:
                    assert clock.now() >= before.open_until
                if ticket.probe is not None:
                    assert before.probe_until is None or before.probe_until <= clock.now()
                    assert ticket.probe > self.newest_probe
                    self.newest_probe = ticket.probe
                    assert self.row.probe_until is not None
                    assert self.row.probe_until > now
                self.out.append(ticket)

    @precondition(lambda self: self.out)
    @rule(
        data=st.data(),
        verdict=st.sampled_from(CallVerdict),
        retry_after=st.none() | st.floats(-10, 1e9),
    )
    def somebody_is_answered(
        self, data: st.DataObject, verdict: CallVerdict, retry_after: float | None
    ) -> None:
        ticket = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        before, now = self.row, clock.now()
        report(self.line, ticket, verdict, retry_after)
        lost = before.probe_until is None or before.probe_until <= now
        superseded = ticket.probe is not None and ticket.probe != before.probe_token
        if ticket.epoch != before.epoch or (ticket.probe is not None and (lost or superseded)):
            after = self.row
            assert (after.state, after.epoch) == (before.state, before.epoch)
            assert after.faults_in_row == before.faults_in_row

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def somebody_dies(self, data: st.DataObject) -> None:
        self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))

    @precondition(lambda self: self.row.pk)
    @rule(data=st.data())
    def somebody_acts_by_hand(self, data: st.DataObject) -> None:
        act = data.draw(st.sampled_from([isolate, close]))
        change_breaker(self.row.pk, act, ManualChange("ada"))

    @invariant()
    def the_history_has_only_legal_edges_and_ends_at_the_state(self) -> None:
        edges = list(BreakerTransition.objects.order_by("pk").values_list("from_state", "to_state"))
        assert all((BreakerState(a), BreakerState(b)) in EDGES for a, b in edges)
        assert all(left[1] == right[0] for left, right in pairwise(edges))
        assert self.row.state == (edges[-1][1] if edges else BreakerState.CLOSED)


@pytest.mark.slow
class AnyCourseTest(TestCase):
    """Its table is real; each example begins with an empty one."""

    def test_any_course_keeps_every_invariant(self) -> None:
        run_state_machine_as_test(
            AnyCourseOfRows,
            settings=settings(
                max_examples=25,
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
