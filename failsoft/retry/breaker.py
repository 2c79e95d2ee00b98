"""A circuit breaker as a pure state machine.

1. Closed lets everything through and counts: faults in a row, for transport also the share of
   faults in the last minute. Too many open it.
2. Open lets nothing through until its cool-down ends; the next to ask gets the one probe.
3. Half-open waits for that probe: it holds a lease, so that a prober that dies blocks nothing.
   A bad probe opens again, for twice as long; enough good ones close.
4. Isolated is open by hand, until it is closed by hand.

Every opening and closing begins an epoch: what belongs to an earlier one changes nothing.
Times are datetimes of the database's clock, durations are seconds, `jitter` is within 0 and 1.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

WINDOW_SECONDS = 60
WINDOW_CALLS = 10
WINDOW_SHARE = 0.5
GOOD_PROBES = 2
JITTER_SHARE = 0.25
# What a provider may ask for: a Retry-After of days would be a fault of its own.
SHORTEST_SECONDS = 1.0
LONGEST_RETRY_AFTER_SECONDS = 3600.0


class BreakerKind(StrEnum):
    """What is watched: calls that are answered, or ladders that find an answer."""

    TRANSPORT = "transport"
    QUALITY = "quality"


class BreakerState(StrEnum):
    """Where a breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    # Open by hand, until it is closed by hand.
    ISOLATED = "isolated"


class TransitionCause(StrEnum):
    """Why a breaker changed its state."""

    FAULTS_IN_A_ROW = "faults_in_a_row"
    FAULT_RATE = "fault_rate"
    COOLED_DOWN = "cooled_down"
    PROBE_FAILED = "probe_failed"
    PROBES_SUCCEEDED = "probes_succeeded"
    BY_HAND = "by_hand"


class CallVerdict(StrEnum):
    """What a call or ladder said about its model; nothing, when it never came to an answer."""

    GOOD = "good"
    BAD = "bad"
    NOTHING = "nothing"


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


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """More than `threshold` faults in a row open; cool-downs double up to the longest."""

    threshold: int = 5
    cool_down_seconds: float = 10.0
    longest_seconds: float = 80.0
    lease_seconds: float = 60.0

    @property
    def longest_wait_seconds(self) -> float:
        """No wait that is told is longer than this."""
        cooling = self.longest_seconds * (1 + JITTER_SHARE)
        return max(cooling, LONGEST_RETRY_AFTER_SECONDS)


@dataclass(frozen=True, slots=True)
class Second:
    """The calls that ended in one second of the clock."""

    at: int
    calls: int
    faults: int


@dataclass(frozen=True, slots=True)
class Circuit:
    """One breaker; `trips` counts openings since it was last closed."""

    kind: BreakerKind
    state: BreakerState = BreakerState.CLOSED
    epoch: int = 0
    faults_in_row: int = 0
    window: tuple[Second, ...] = ()
    trips: int = 0
    good_probes: int = 0
    open_until: datetime | None = None
    probe_token: int = 0
    probe_until: datetime | None = None
    cause: TransitionCause | None = None


@dataclass(frozen=True, slots=True)
class Ticket:
    """What was let through: its epoch, and its token if it is a probe."""

    epoch: int
    probe: int | None = None


@dataclass(frozen=True, slots=True)
class Allowed:
    """Go on; a probe has to be stored as `circuit` first, by whoever still finds the old one."""

    ticket: Ticket
    circuit: Circuit


@dataclass(frozen=True, slots=True)
class Denied:
    """Not now; ask again after so many seconds."""

    retry_after_seconds: float


Admission = Allowed | Denied


def admit(circuit: Circuit, now: datetime, policy: BreakerPolicy) -> Admission:
    """Decide whether one more may pass."""
    if circuit.state is BreakerState.CLOSED:
        return Allowed(Ticket(circuit.epoch), circuit)
    wait = _wait_seconds(circuit, now, policy)
    if wait > 0:
        return Denied(min(wait, policy.longest_wait_seconds))
    opening = circuit.state is BreakerState.OPEN
    probing = replace(
        circuit,
        state=BreakerState.HALF_OPEN,
        open_until=None,
        probe_token=circuit.probe_token + 1,
        probe_until=now + timedelta(seconds=policy.lease_seconds),
        cause=TransitionCause.COOLED_DOWN if opening else circuit.cause,
    )
    return Allowed(Ticket(circuit.epoch, probing.probe_token), probing)


def settle(
    circuit: Circuit,
    ticket: Ticket,
    verdict: CallVerdict,
    now: datetime,
    policy: BreakerPolicy,
    jitter: float,
    retry_after_seconds: float | None = None,
) -> Circuit:
    """Take in what came of a ticket; the circuit itself when that changes nothing.

    `retry_after_seconds` is what the provider asked for; it wins over the cool-down.
    """
    if ticket.epoch != circuit.epoch:
        return circuit
    pause = _cool_down_seconds(circuit, policy, jitter, retry_after_seconds)
    if circuit.state is BreakerState.CLOSED and verdict is not CallVerdict.NOTHING:
        counted = _count(circuit, verdict, now)
        cause = _cause_to_open(counted, policy) if verdict is CallVerdict.BAD else None
        return _open(counted, now, pause, cause) if cause else counted
    if not holds_probe(circuit, ticket, now):
        return circuit
    match verdict:
        case CallVerdict.BAD:
            return _open(circuit, now, pause, TransitionCause.PROBE_FAILED)
        case CallVerdict.GOOD if circuit.good_probes + 1 >= GOOD_PROBES:
            return _close(circuit, TransitionCause.PROBES_SUCCEEDED)
        case _:
            good = circuit.good_probes + (verdict is CallVerdict.GOOD)
            return replace(circuit, probe_until=None, good_probes=good)


def holds_probe(circuit: Circuit, ticket: Ticket, now: datetime) -> bool:
    """Whether a ticket is the live probe: newest token, lease not run out."""
    return (
        circuit.state is BreakerState.HALF_OPEN
        and ticket.epoch == circuit.epoch
        and ticket.probe == circuit.probe_token
        and circuit.probe_until is not None
        and circuit.probe_until > now
    )


def renew_probe(circuit: Circuit, ticket: Ticket, now: datetime, policy: BreakerPolicy) -> Circuit:
    """Hold a live probe for another lease."""
    if not holds_probe(circuit, ticket, now):
        return circuit
    lease = timedelta(seconds=policy.lease_seconds)
    return replace(circuit, probe_until=now + lease)


def isolate(circuit: Circuit) -> Circuit:
    """Open by hand, until it is closed by hand."""
    if circuit.state is BreakerState.ISOLATED:
        return circuit
    return Circuit(
        circuit.kind,
        BreakerState.ISOLATED,
        circuit.epoch + 1,
        probe_token=circuit.probe_token,
        cause=TransitionCause.BY_HAND,
    )


def close(circuit: Circuit) -> Circuit:
    """Close by hand, whatever the state; everything is forgotten."""
    if circuit.state is BreakerState.CLOSED:
        return circuit
    return _close(circuit, TransitionCause.BY_HAND)


def _wait_seconds(circuit: Circuit, now: datetime, policy: BreakerPolicy) -> float:
    match circuit.state:
        case BreakerState.ISOLATED:
            return policy.longest_seconds
        case BreakerState.OPEN if circuit.open_until is not None:
            return (circuit.open_until - now).total_seconds()
        case BreakerState.HALF_OPEN if circuit.probe_until is not None:
            # A probe is usually answered long before its lease ends.
            left = (circuit.probe_until - now).total_seconds()
            return min(left, policy.cool_down_seconds)
        case _:
            return 0.0


def _cool_down_seconds(
    circuit: Circuit, policy: BreakerPolicy, jitter: float, retry_after: float | None
) -> float:
    if retry_after is not None:
        return min(max(retry_after, SHORTEST_SECONDS), LONGEST_RETRY_AFTER_SECONDS)
    doubled = policy.cool_down_seconds * (1 << min(circuit.trips, 16))
    return min(doubled, policy.longest_seconds) * (1 + JITTER_SHARE * jitter)


def _count(circuit: Circuit, verdict: CallVerdict, now: datetime) -> Circuit:
    failed = verdict is CallVerdict.BAD
    in_row = circuit.faults_in_row + 1 if failed else 0
    if circuit.kind is BreakerKind.QUALITY:
        return replace(circuit, faults_in_row=in_row)
    window = _with_call(circuit.window, int(now.timestamp()), failed)
    return replace(circuit, faults_in_row=in_row, window=window)


def _with_call(window: tuple[Second, ...], second: int, failed: bool) -> tuple[Second, ...]:
    kept = {item.at: item for item in window if item.at > second - WINDOW_SECONDS}
    here = kept.get(second, Second(second, 0, 0))
    kept[second] = Second(second, here.calls + 1, here.faults + failed)
    return tuple(kept[at] for at in sorted(kept))


def _cause_to_open(circuit: Circuit, policy: BreakerPolicy) -> TransitionCause | None:
    if circuit.faults_in_row > policy.threshold:
        return TransitionCause.FAULTS_IN_A_ROW
    calls = sum(item.calls for item in circuit.window)
    faults = sum(item.faults for item in circuit.window)
    if calls >= WINDOW_CALLS and faults >= WINDOW_SHARE * calls:
        return TransitionCause.FAULT_RATE
    return None


def _open(circuit: Circuit, now: datetime, seconds: float, cause: TransitionCause) -> Circuit:
    return Circuit(
        circuit.kind,
        BreakerState.OPEN,
        circuit.epoch + 1,
        trips=circuit.trips + 1,
        open_until=now + timedelta(seconds=seconds),
        probe_token=circuit.probe_token,
        cause=cause,
    )


def _close(circuit: Circuit, cause: TransitionCause) -> Circuit:
    return Circuit(
        circuit.kind, epoch=circuit.epoch + 1, probe_token=circuit.probe_token, cause=cause
    )
