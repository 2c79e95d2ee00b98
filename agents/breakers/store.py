"""The shell of the circuit breakers: rows, leases, the database's clock.

1. A breaker that is closed is believed to be so for a second: no query before most calls.
2. A probe is taken by a conditional update: of any number of processes one finds the old row.
3. What came of a ticket is taken in under a lock of the row, and only when it changes something.
4. Every change of state is a transition, in the transaction that made it.
"""

import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from time import monotonic
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from agents.breakers.models import Breaker, BreakerTransition
from diagnostics import clock
from diagnostics.accounts.audit_log import Actor, identity_of, note
from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import redact
from failsoft.json_values import clean_text
from failsoft.retry.breaker import (
    Admission,
    Allowed,
    BreakerKind,
    BreakerPolicy,
    BreakerState,
    CallVerdict,
    Circuit,
    Second,
    Ticket,
    TransitionCause,
    admit,
    close,
    isolate,
    renew_probe,
    settle,
)

logger = structlog.get_logger(__name__)

BELIEVED_SECONDS = 1.0
ACTOR_CHARACTERS = 200
REASON_BYTES = 500
_random = secrets.SystemRandom()


@dataclass(frozen=True, slots=True)
class BreakerScope:
    """What one breaker stands for."""

    project_id: int
    provider: str
    model: str
    operation: str
    kind: BreakerKind

    def columns(self) -> dict[str, Any]:
        """The row's identity."""
        return asdict(self)


# When this process last saw a breaker closed, by its own steady clock, and in which epoch.
_seen_closed: dict[BreakerScope, tuple[float, int]] = {}


def policy() -> BreakerPolicy:
    """The installation's policy."""
    first = settings.FAILSOFT_BREAKER_COOL_DOWN_SECONDS
    return BreakerPolicy(
        threshold=settings.FAILSOFT_BREAKER_THRESHOLD,
        cool_down_seconds=first,
        longest_seconds=8 * first,
    )


def ask(line: BreakerScope) -> Admission:
    """Decide whether one more call or ladder may pass; stores the probe that it lets through."""
    seen_at, epoch = _seen_closed.get(line, (float("-inf"), 0))
    if monotonic() - seen_at < BELIEVED_SECONDS:
        return Allowed(Ticket(epoch), Circuit(line.kind, epoch=epoch))
    while True:
        row = _find(line)
        circuit = _circuit_of(row, line.kind)
        admission = admit(circuit, row.now if row else clock.now(), policy())
        if circuit.state is BreakerState.CLOSED:
            _seen_closed[line] = (monotonic(), circuit.epoch)
        if row is None or not isinstance(admission, Allowed):
            return admission
        if admission.circuit == circuit or _take_probe(row, circuit, admission.circuit):
            return admission


def tell(
    line: BreakerScope,
    ticket: Ticket,
    verdict: CallVerdict,
    retry_after_seconds: float | None = None,
) -> None:
    """Take in what came of a ticket; nothing is written when nothing changes."""
    jitter = _random.random()

    def settled(circuit: Circuit, now: datetime) -> Circuit:
        return settle(circuit, ticket, verdict, now, policy(), jitter, retry_after_seconds)

    row = _find(line)
    circuit = _circuit_of(row, line.kind)
    if settled(circuit, row.now if row else clock.now()) == circuit:
        return
    if row is None:
        Breaker.objects.bulk_create([Breaker(**line.columns())], ignore_conflicts=True)
    with transaction.atomic():
        held = Breaker.objects.select_for_update().get(**line.columns())
        # The clock is read when the row is ours: the wait for it is not in the past.
        _store(held, settled(_circuit_of(held, line.kind), clock.now()))


def renew(line: BreakerScope, ticket: Ticket) -> None:
    """Hold a probe for another lease; one that was lost stays lost."""
    if ticket.probe is None:
        return
    with transaction.atomic():
        held = Breaker.objects.select_for_update().get(**line.columns())
        circuit = _circuit_of(held, line.kind)
        _store(held, renew_probe(circuit, ticket, clock.now(), policy()))


@dataclass(frozen=True, slots=True)
class Hand:
    """Who moved a breaker by hand, and the reason they gave; nobody when the rules did."""

    actor: Actor = ""
    reason: str = ""


BY_THE_RULES = Hand()


def isolate_breaker(breaker_id: int, hand: Hand) -> bool:
    """Open a breaker by hand until it is closed by hand; whether that changed anything."""
    return _move(breaker_id, isolate, hand)


def isolate_line(line: BreakerScope, hand: Hand) -> bool:
    """The same for a breaker that may never have seen a fault, and so has no row yet."""
    Breaker.objects.bulk_create([Breaker(**line.columns())], ignore_conflicts=True)
    return isolate_breaker(Breaker.objects.get(**line.columns()).pk, hand)


def close_breaker(breaker_id: int, hand: Hand) -> bool:
    """Close a breaker by hand; whether that changed anything."""
    return _move(breaker_id, close, hand)


@transaction.atomic
def _move(breaker_id: int, move: Callable[[Circuit], Circuit], hand: Hand) -> bool:
    """Write what a hand changed of a breaker, and in the audit log whose hand it was."""
    held = Breaker.objects.select_for_update().get(pk=breaker_id)
    after = move(_circuit_of(held, BreakerKind(held.kind)))
    if not _store(held, after, hand):
        return False
    target = f"{held.provider}/{held.model} {held.operation}"
    note(held.project_id, hand.actor, f"breaker.{after.state}", target, {"why": hand.reason})
    return True


def forget_seen() -> None:
    """Believe nothing: the next question is put to the database."""
    _seen_closed.clear()


def _find(line: BreakerScope) -> Any:  # noqa: ANN401 - a row with its time
    return Breaker.objects.filter(**line.columns()).annotate(now=DatabaseNow()).first()


def _circuit_of(row: Breaker | None, kind: BreakerKind) -> Circuit:
    if row is None:
        return Circuit(kind)
    return Circuit(
        kind=kind,
        state=BreakerState(row.state),
        epoch=row.epoch,
        faults_in_row=row.faults_in_row,
        window=tuple(Second(*item) for item in row.window),
        trips=row.trips,
        good_probes=row.good_probes,
        open_until=row.open_until,
        probe_token=row.probe_token,
        probe_until=row.probe_until,
        cause=TransitionCause(row.cause) if row.cause else None,
    )


def _columns_of(circuit: Circuit) -> dict[str, Any]:
    window = [[item.at, item.calls, item.faults] for item in circuit.window]
    return asdict(circuit) | {"window": window}


def _take_probe(row: Breaker, found: Circuit, probing: Circuit) -> bool:
    """Store a probe if the row is still as it was found: token and epoch only ever grow."""
    with transaction.atomic():
        taken = Breaker.objects.filter(
            pk=row.pk, state=found.state, epoch=found.epoch, probe_token=found.probe_token
        ).update(**_columns_of(probing))
        if taken == 1:
            _note(row, found, probing, clock.now(), BY_THE_RULES)
    return taken == 1


def _store(held: Breaker, after: Circuit, hand: Hand = BY_THE_RULES) -> bool:
    """Write what changed of a row that is locked."""
    before = _circuit_of(held, after.kind)
    if after == before:
        return False
    Breaker.objects.filter(pk=held.pk).update(**_columns_of(after))
    _note(held, before, after, clock.now(), hand)
    return True


def _note(row: Breaker, before: Circuit, after: Circuit, at: datetime, hand: Hand) -> None:
    if after.state is before.state:
        return
    line = BreakerScope(row.project_id, row.provider, row.model, row.operation, after.kind)
    _seen_closed.pop(line, None)
    BreakerTransition.objects.create(
        breaker=row,
        from_state=before.state,
        to_state=after.state,
        at=at,
        cause=after.cause or TransitionCause.BY_HAND,
        actor=clean_text(identity_of(hand.actor)[1])[:ACTOR_CHARACTERS],
        reason=redact(clean_text(hand.reason), REASON_BYTES),
        epoch=after.epoch,
    )
    Breaker.objects.filter(pk=row.pk).update(changed_at=at)
    log = logger.info if after.state is BreakerState.CLOSED else logger.warning
    log(
        "breaker_changed",
        provider=row.provider,
        model=row.model,
        operation=row.operation,
        kind=row.kind,
        state=after.state.value,
        cause=after.cause.value if after.cause else None,
        actor=hand.actor or None,
    )
