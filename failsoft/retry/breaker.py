"""A circuit breaker as a pure state machine.

1. Closed admits every call and counts consecutive faults; a transport breaker also counts the
   share of faults in the last minute. Too many faults open it.
2. Open denies every call until its cool-down ends; the next call becomes the only probe.
3. Half-open waits for that probe. The probe has a lease, so that a dead worker does not block it.
   A failed probe opens the breaker again, for twice as long; enough good probes close it.
4. Isolated is opened manually, until it is closed manually.

Every opening and closing begins an epoch; tickets of earlier epochs have no effect.
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
# Bounds of a Retry-After header: a provider must not block its model for days.
SHORTEST_SECONDS = 1.0
LONGEST_RETRY_AFTER_SECONDS = 3600.0


class BreakerKind(StrEnum):
    """The faults that a breaker counts: failed calls, or retry loops without a valid answer."""

    TRANSPORT = "transport"
    QUALITY = "quality"


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    # Opened manually, until it is closed manually.
    ISOLATED = "isolated"


class TransitionCause(StrEnum):
    FAULTS_IN_A_ROW = "faults_in_a_row"
    FAULT_RATE = "fault_rate"
    COOLED_DOWN = "cooled_down"
    PROBE_FAILED = "probe_failed"
    PROBES_SUCCEEDED = "probes_succeeded"
    BY_HAND = "by_hand"


class CallVerdict(StrEnum):
    """The verdict of a call or retry loop; nothing when it is inconclusive."""

    GOOD = "good"
    BAD = "bad"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """The limits of a breaker.

    More than `threshold` consecutive faults open it; cool-downs double up to the longest.
    """

    threshold: int = 5
    cool_down_seconds: float = 10.0
    longest_seconds: float = 80.0
    lease_seconds: float = 60.0

    @property
    def longest_wait_seconds(self) -> float:
        """The upper bound of every reported wait."""
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
    """An admitted call: its epoch, and its token if it is a probe."""

    epoch: int
    probe: int | None = None


@dataclass(frozen=True, slots=True)
class Allowed:
    """Admitted; for a probe, `circuit` must first replace the unchanged stored one."""

    ticket: Ticket
    circuit: Circuit


@dataclass(frozen=True, slots=True)
class Denied:
    """Denied; retry after `retry_after_seconds`."""

    retry_after_seconds: float


Admission = Allowed | Denied


def admit(circuit: Circuit, now: datetime, policy: BreakerPolicy) -> Admission:
    if circuit.state is BreakerState.CLOSED:
        return Allowed(Ticket(circuit.epoch), circuit)
    wait = _wait_seconds(circuit, now, policy)
    # A longer wait was never set: the clock has been set back.
    if 0 < wait <= policy.longest_wait_seconds:
        return Denied(wait)
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
    """Return the circuit after the result of a ticket; the same object if nothing changes.

    `retry_after_seconds` comes from the provider and overrides the cool-down.
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
    """Whether a ticket is the current probe: the newest token with a valid lease."""
    return (
        circuit.state is BreakerState.HALF_OPEN
        and ticket.epoch == circuit.epoch
        and ticket.probe == circuit.probe_token
        and circuit.probe_until is not None
        and circuit.probe_until > now
    )


def renew_probe(circuit: Circuit, ticket: Ticket, now: datetime, policy: BreakerPolicy) -> Circuit:
    if not holds_probe(circuit, ticket, now):
        return circuit
    lease = timedelta(seconds=policy.lease_seconds)
    return replace(circuit, probe_until=now + lease)


def isolate(circuit: Circuit) -> Circuit:
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
            # A probe usually ends long before its lease.
            lease_seconds = (circuit.probe_until - now).total_seconds()
            is_set_back = lease_seconds > policy.lease_seconds
            return 0.0 if is_set_back else min(lease_seconds, policy.cool_down_seconds)
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
    second = int(now.timestamp())
    seconds = {item.at: item for item in circuit.window if -WINDOW_SECONDS < item.at - second <= 0}
    current = seconds.get(second, Second(second, 0, 0))
    seconds[second] = Second(second, current.calls + 1, current.faults + failed)
    window = tuple(seconds[at] for at in sorted(seconds))
    return replace(circuit, faults_in_row=in_row, window=window)


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
