"""The breaker's rules, without a database: tables first, then every invariant at random."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from failsoft.retry.breaker import (
    Allowed,
    BreakerKind,
    BreakerPolicy,
    BreakerState,
    CallVerdict,
    Circuit,
    Denied,
    Ticket,
    TransitionCause,
    admit,
    close,
    holds_probe,
    isolate,
    renew_probe,
    settle,
)

EDGES = frozenset(
    {
        (BreakerState.CLOSED, BreakerState.OPEN),
        (BreakerState.OPEN, BreakerState.HALF_OPEN),
        (BreakerState.HALF_OPEN, BreakerState.OPEN),
        (BreakerState.HALF_OPEN, BreakerState.CLOSED),
        (BreakerState.CLOSED, BreakerState.ISOLATED),
        (BreakerState.OPEN, BreakerState.ISOLATED),
        (BreakerState.HALF_OPEN, BreakerState.ISOLATED),
        (BreakerState.OPEN, BreakerState.CLOSED),
        (BreakerState.ISOLATED, BreakerState.CLOSED),
    }
)
START = datetime(2026, 11, 21, 12, tzinfo=UTC)
POLICY = BreakerPolicy()
GOOD, BAD, NOTHING = CallVerdict.GOOD, CallVerdict.BAD, CallVerdict.NOTHING


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def after(kind: BreakerKind, verdicts: str, *, apart: float = 1.0) -> Circuit:
    """A circuit after calls that ended well (g) or badly (b), so many seconds apart."""
    circuit = Circuit(kind)
    for place, letter in enumerate(verdicts):
        verdict = GOOD if letter == "g" else BAD
        ticket = Ticket(circuit.epoch)
        circuit = settle(circuit, ticket, verdict, at(place * apart), POLICY, 0.0)
    return circuit


def opened(kind: BreakerKind = BreakerKind.TRANSPORT, **changes: object) -> Circuit:
    return replace(after(kind, "bbbbbb", apart=0), **changes)  # type: ignore[arg-type] # its fields


def probing(circuit: Circuit, now: datetime) -> tuple[Circuit, Ticket]:
    admission = admit(circuit, now, POLICY)
    assert isinstance(admission, Allowed)
    return admission.circuit, admission.ticket


@pytest.mark.parametrize(
    ("kind", "verdicts", "apart", "state"),
    [
        # Five in a row are borne, the sixth opens (S1-33).
        (BreakerKind.QUALITY, "bbbbb", 1, BreakerState.CLOSED),
        (BreakerKind.QUALITY, "bbbbbb", 1, BreakerState.OPEN),
        # However far apart.
        (BreakerKind.QUALITY, "bbbbbb", 3600, BreakerState.OPEN),
        # A good one in between begins anew.
        (BreakerKind.QUALITY, "bbbbbgbbbbb", 1, BreakerState.CLOSED),
        # The share of the last minute is for transport only.
        (BreakerKind.QUALITY, "gbgbgbgbgbgb", 1, BreakerState.CLOSED),
        (BreakerKind.TRANSPORT, "bbbbb", 1, BreakerState.CLOSED),
        (BreakerKind.TRANSPORT, "bbbbbb", 1, BreakerState.OPEN),
        # Ten calls, half of them bad.
        (BreakerKind.TRANSPORT, "gbgbgbgbg", 1, BreakerState.CLOSED),
        (BreakerKind.TRANSPORT, "gbgbgbgbgb", 1, BreakerState.OPEN),
        # Ten calls, fewer than half bad.
        (BreakerKind.TRANSPORT, "ggbgbgbgbg", 1, BreakerState.CLOSED),
        (BreakerKind.TRANSPORT, "gggggggggggbbbbb", 1, BreakerState.CLOSED),
        # Never ten within one minute.
        (BreakerKind.TRANSPORT, "gbgbgbgbgbgbgb", 7, BreakerState.CLOSED),
    ],
)
def test_s1_33_too_many_faults_open(
    kind: BreakerKind, verdicts: str, apart: float, state: BreakerState
) -> None:
    assert after(kind, verdicts, apart=apart).state is state


@pytest.mark.parametrize(
    ("trips", "jitter", "retry_after", "seconds"),
    [
        # It doubles, up to eight times the first.
        (0, 0.0, None, 10),
        (1, 0.0, None, 20),
        (2, 0.0, None, 40),
        (3, 0.0, None, 80),
        (9, 0.0, None, 80),
        (100_000, 0.0, None, 80),
        # Jitter only lengthens, by a quarter at most.
        (0, 1.0, None, 12.5),
        (3, 1.0, None, 100),
        # What the provider asks for wins, within reason.
        (0, 1.0, 33.0, 33),
        (3, 0.5, 5.0, 5),
        (0, 0.0, 0.0, 1),
        (0, 0.0, -7.0, 1),
        (0, 0.0, 1e12, 3600),
    ],
)
def test_s1_35_the_cool_down_doubles_and_retry_after_wins(
    trips: int, jitter: float, retry_after: float | None, seconds: float
) -> None:
    circuit = replace(Circuit(BreakerKind.TRANSPORT), faults_in_row=5, trips=trips)
    settled = settle(circuit, Ticket(0), BAD, START, POLICY, jitter, retry_after)
    assert settled.open_until == at(seconds)


def test_s1_35_after_the_cool_down_two_good_probes_close() -> None:
    circuit = opened()
    assert admit(circuit, at(9.5), POLICY) == Denied(0.5)
    circuit, ticket = probing(circuit, at(10))
    assert admit(circuit, at(10), POLICY) == Denied(10)

    circuit = settle(circuit, ticket, GOOD, at(11), POLICY, 0.0)
    assert circuit.state is BreakerState.HALF_OPEN
    circuit, second = probing(circuit, at(11))
    assert second.probe == 2
    circuit = settle(circuit, second, GOOD, at(12), POLICY, 0.0)

    assert (circuit.state, circuit.cause) == (BreakerState.CLOSED, TransitionCause.PROBES_SUCCEEDED)
    assert (circuit.trips, circuit.faults_in_row) == (0, 0)


def test_s1_35_a_bad_probe_opens_again_for_twice_as_long() -> None:
    circuit, ticket = probing(opened(), at(10))
    circuit = settle(circuit, ticket, BAD, at(11), POLICY, 0.0)
    assert (circuit.state, circuit.open_until) == (BreakerState.OPEN, at(31))
    assert circuit.cause is TransitionCause.PROBE_FAILED


def test_a_probe_that_says_nothing_makes_room_for_the_next() -> None:
    circuit, ticket = probing(opened(), at(10))
    circuit = settle(circuit, ticket, NOTHING, at(11), POLICY, 0.0)
    assert circuit.state is BreakerState.HALF_OPEN
    assert probing(circuit, at(11))[1].probe == 2


def test_an_answer_whose_lease_ran_out_changes_nothing() -> None:
    circuit, ticket = probing(opened(), at(10))
    assert settle(circuit, ticket, GOOD, at(71), POLICY, 0.0) == circuit
    assert settle(circuit, ticket, BAD, at(71), POLICY, 0.0) == circuit
    assert renew_probe(circuit, ticket, at(71), POLICY) == circuit


def test_a_dead_prober_is_followed_by_another() -> None:
    circuit, first = probing(opened(), at(10))
    assert isinstance(admit(circuit, at(69), POLICY), Denied)
    circuit, second = probing(circuit, at(70))
    assert second.probe == 2
    assert settle(circuit, first, BAD, at(71), POLICY, 0.0) == circuit


def test_a_clock_that_is_set_back_holds_no_breaker_for_longer_than_it_was_told() -> None:
    a_day_ago = at(-86_400)
    opened = after(BreakerKind.TRANSPORT, "bbbbbb")
    probing = admit(opened, a_day_ago, POLICY)
    assert isinstance(probing, Allowed)
    started = admit(opened, at(60), POLICY)
    assert isinstance(started, Allowed)
    assert isinstance(admit(started.circuit, a_day_ago, POLICY), Allowed)


def test_faults_that_are_yet_to_come_are_not_counted() -> None:
    circuit = after(BreakerKind.TRANSPORT, "ggbgbgbgb")
    earlier = settle(circuit, Ticket(circuit.epoch), BAD, at(-3_600), POLICY, 0.0)
    assert [item.at for item in earlier.window] == [int(at(-3_600).timestamp())]


def test_a_renewed_probe_lasts_longer() -> None:
    circuit, ticket = probing(opened(), at(10))
    circuit = renew_probe(circuit, ticket, at(60), POLICY)
    assert holds_probe(circuit, ticket, at(119))


def test_a_late_answer_of_an_earlier_epoch_changes_nothing() -> None:
    circuit = opened()
    assert settle(circuit, Ticket(0), GOOD, at(1), POLICY, 0.0) == circuit
    half, _ = probing(circuit, at(10))
    assert settle(half, Ticket(0), BAD, at(11), POLICY, 0.0) == half


def test_isolated_stays_so_until_closed_by_hand() -> None:
    circuit = isolate(Circuit(BreakerKind.TRANSPORT))
    assert admit(circuit, at(1e6), POLICY) == Denied(80)
    assert isolate(circuit) == circuit
    circuit = close(circuit)
    assert (circuit.state, circuit.cause) == (BreakerState.CLOSED, TransitionCause.BY_HAND)
    assert close(circuit) == circuit


def test_a_good_run_at_rest_changes_nothing() -> None:
    circuit = Circuit(BreakerKind.QUALITY)
    assert settle(circuit, Ticket(0), GOOD, START, POLICY, 0.0) == circuit
    assert settle(circuit, Ticket(0), NOTHING, START, POLICY, 0.0) == circuit


class AnyCourse(RuleBasedStateMachine):
    """Any number of callers, answers in any order, time that only goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.circuit = Circuit(BreakerKind.TRANSPORT)
        self.now = START
        self.out: list[Ticket] = []
        self.newest_probe = 0

    def change_to(self, circuit: Circuit) -> None:
        before, self.circuit = self.circuit, circuit
        if before.state is not circuit.state:
            assert (before.state, circuit.state) in EDGES
        if circuit.epoch == before.epoch and before.state is not circuit.state:
            assert (before.state, circuit.state) == (BreakerState.OPEN, BreakerState.HALF_OPEN)
        assert circuit.epoch in (before.epoch, before.epoch + 1)

    @rule(seconds=st.floats(0, 130))
    def time_passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @rule()
    def somebody_asks(self) -> None:
        admission = admit(self.circuit, self.now, POLICY)
        match admission:
            case Denied(seconds):
                assert self.circuit.state is not BreakerState.CLOSED
                assert 0 < seconds <= POLICY.longest_wait_seconds
            case Allowed(ticket, circuit):
                assert self.circuit.state is not BreakerState.ISOLATED
                if self.circuit.open_until is not None:
                    assert self.now >= self.circuit.open_until
                if ticket.probe is not None:
                    assert not self.live_probes()
                    assert ticket.probe > self.newest_probe
                    self.newest_probe = ticket.probe
                self.change_to(circuit)
                self.out.append(ticket)

    @precondition(lambda self: self.out)
    @rule(
        data=st.data(),
        verdict=st.sampled_from(CallVerdict),
        jitter=st.floats(0, 1),
        retry_after=st.none() | st.floats(-10, 1e9),
    )
    def somebody_is_answered(
        self, data: st.DataObject, verdict: CallVerdict, jitter: float, retry_after: float | None
    ) -> None:
        ticket = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        before = self.circuit
        held = holds_probe(before, ticket, self.now)
        self.change_to(settle(before, ticket, verdict, self.now, POLICY, jitter, retry_after))
        if ticket.epoch != before.epoch or (ticket.probe is not None and not held):
            assert self.circuit == before
        if held and verdict is CallVerdict.BAD:
            assert self.circuit.state is BreakerState.OPEN
            assert self.circuit.open_until is not None
            assert self.circuit.open_until > self.now

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def somebody_dies(self, data: st.DataObject) -> None:
        self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))

    @rule()
    def somebody_isolates(self) -> None:
        self.change_to(isolate(self.circuit))

    @rule()
    def somebody_closes(self) -> None:
        self.change_to(close(self.circuit))
        assert self.circuit.state is BreakerState.CLOSED

    def live_probes(self) -> list[Ticket]:
        return [t for t in self.out if holds_probe(self.circuit, t, self.now)]

    @invariant()
    def at_most_one_probe_lives(self) -> None:
        assert len(self.live_probes()) <= 1

    @invariant()
    def it_is_never_stuck(self) -> None:
        if self.circuit.state is BreakerState.ISOLATED:
            return
        later = self.now + timedelta(seconds=POLICY.longest_wait_seconds + 1)
        assert isinstance(admit(self.circuit, later, POLICY), Allowed)


AnyCourse.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAnyCourse = AnyCourse.TestCase
