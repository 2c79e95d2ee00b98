"""Store circuit breakers: rows, leases of probes, transitions; guard the calls of a cycle.

1. A closed breaker is cached for a second: most calls need no query.
2. A probe is taken by a conditional update: of concurrent processes only one succeeds.
3. The result of a ticket is stored under a lock of the row, and only if it changes something.
4. Every change of state is stored as a transition, in the same transaction.

A cycle has two breakers: quality for its attempts, transport for each call.

1. Before the first attempt: quality allows retries or, while open, one attempt or none.
2. Before each call transport admits or denies it; after it, its result is reported.
3. After the last attempt: quality gets the result, if a call was made and answered.
"""

import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Self

import structlog
from django.conf import settings
from django.db import transaction

from agents.breakers.models import DENY, Breaker, BreakerTransition
from agents.llm.provider import Completion, RefusedContentError
from agents.llm.transport import Reply
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
    Denied,
    Second,
    Ticket,
    TransitionCause,
    admit,
    isolate,
    renew_probe,
    settle,
)
from failsoft.retry.engine import Ending, Exhausted, Succeeded
from failsoft.retry.policy import RetryPolicy

logger = structlog.get_logger(__name__)

BELIEVED_SECONDS = 1.0
ACTOR_CHARACTERS = 200
REASON_BYTES = 500
KEEP_TRANSITIONS = timedelta(days=90)
_random = secrets.SystemRandom()


@dataclass(frozen=True, slots=True)
class BreakerScope:
    project_id: int
    provider: str
    model: str
    operation: str
    kind: BreakerKind


# When this process last saw a breaker closed, by `monotonic`, and in which epoch.
seen_closed: dict[BreakerScope, tuple[float, int]] = {}


def policy() -> BreakerPolicy:
    first = settings.FAILSOFT_BREAKER_COOL_DOWN_SECONDS
    return BreakerPolicy(
        threshold=settings.FAILSOFT_BREAKER_THRESHOLD,
        cool_down_seconds=first,
        longest_seconds=8 * first,
    )


def acquire(scope: BreakerScope) -> Admission:
    """Return whether one more call or cycle is admitted; store the probe if it is one."""
    seen_at, epoch = seen_closed.get(scope, (float("-inf"), 0))
    if monotonic() - seen_at < BELIEVED_SECONDS:
        return Allowed(Ticket(epoch), Circuit(scope.kind, epoch=epoch))
    while True:
        row = _find(scope)
        circuit = _circuit_of(row, scope.kind)
        admission = admit(circuit, row.now if row else clock.now(), policy())
        if circuit.state is BreakerState.CLOSED:
            seen_closed[scope] = (monotonic(), circuit.epoch)
        if row is None or not isinstance(admission, Allowed):
            return admission
        if admission.circuit == circuit or _take_probe(row, circuit, admission.circuit):
            return admission


def report(
    scope: BreakerScope,
    ticket: Ticket,
    verdict: CallVerdict,
    retry_after_seconds: float | None = None,
) -> None:
    """Store the result of a ticket; write nothing if nothing changes."""
    jitter = _random.random()

    def settled(circuit: Circuit, now: datetime) -> Circuit:
        return settle(circuit, ticket, verdict, now, policy(), jitter, retry_after_seconds)

    row = _find(scope)
    circuit = _circuit_of(row, scope.kind)
    if settled(circuit, row.now if row else clock.now()) == circuit:
        return
    if row is None:
        Breaker.objects.bulk_create([Breaker(**asdict(scope))], ignore_conflicts=True)
    with transaction.atomic():
        locked = Breaker.objects.select_for_update().get(**asdict(scope))
        # The clock is read under the lock, so that the wait for it does not count.
        _store(locked, settled(_circuit_of(locked, scope.kind), clock.now()))


def renew(scope: BreakerScope, ticket: Ticket) -> None:
    """Renew the lease of a probe; a lost one stays lost."""
    if ticket.probe is None:
        return
    with transaction.atomic():
        locked = Breaker.objects.select_for_update().get(**asdict(scope))
        circuit = _circuit_of(locked, scope.kind)
        _store(locked, renew_probe(circuit, ticket, clock.now(), policy()))


@dataclass(frozen=True, slots=True)
class ManualChange:
    """Who changed a breaker manually, and why; empty for an automatic change."""

    actor: Actor = ""
    reason: str = ""


AUTOMATIC = ManualChange()


def isolate_scope(scope: BreakerScope, change: ManualChange) -> bool:
    """Isolate a breaker that may have no row yet."""
    Breaker.objects.bulk_create([Breaker(**asdict(scope))], ignore_conflicts=True)
    return change_breaker(Breaker.objects.get(**asdict(scope)).pk, isolate, change)


@transaction.atomic
def change_breaker(
    breaker_id: int, move: Callable[[Circuit], Circuit], change: ManualChange
) -> bool:
    """Isolate or close a breaker manually; return whether that changed anything."""
    locked = Breaker.objects.select_for_update().get(pk=breaker_id)
    after = move(_circuit_of(locked, BreakerKind(locked.kind)))
    if not _store(locked, after, change):
        return False
    target = f"{locked.provider}/{locked.model} {locked.operation}"
    note(locked.project_id, change.actor, f"breaker.{after.state}", target, {"why": change.reason})
    return True


def _find(scope: BreakerScope) -> Any:  # noqa: ANN401 - a row with its time
    return Breaker.objects.filter(**asdict(scope)).annotate(now=DatabaseNow()).first()


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


def _take_probe(row: Breaker, circuit: Circuit, probing: Circuit) -> bool:
    """Store a probe if the row is unchanged: token and epoch only grow."""
    with transaction.atomic():
        updated = Breaker.objects.filter(
            pk=row.pk, state=circuit.state, epoch=circuit.epoch, probe_token=circuit.probe_token
        ).update(**_columns_of(probing))
        if updated == 1:
            _note(row, circuit, probing, clock.now(), AUTOMATIC)
    return updated == 1


def _store(locked: Breaker, after: Circuit, change: ManualChange = AUTOMATIC) -> bool:
    before = _circuit_of(locked, after.kind)
    if after == before:
        return False
    Breaker.objects.filter(pk=locked.pk).update(**_columns_of(after))
    _note(locked, before, after, clock.now(), change)
    return True


def _note(
    row: Breaker, before: Circuit, after: Circuit, at: datetime, change: ManualChange
) -> None:
    if after.state is before.state:
        return
    scope = BreakerScope(row.project_id, row.provider, row.model, row.operation, after.kind)
    seen_closed.pop(scope, None)
    BreakerTransition.objects.create(
        breaker=row,
        from_state=before.state,
        to_state=after.state,
        at=at,
        cause=after.cause or TransitionCause.BY_HAND,
        actor=clean_text(identity_of(change.actor)[1])[:ACTOR_CHARACTERS],
        reason=redact(clean_text(change.reason), REASON_BYTES),
        epoch=after.epoch,
    )
    row.transitions.filter(at__lt=at - KEEP_TRANSITIONS).delete()
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
        actor=change.actor or None,
    )


@dataclass(slots=True)
class Guard:
    """The breakers of one cycle, and what they have admitted."""

    transport: BreakerScope
    quality: BreakerScope
    admission: Admission | None = None
    call: Ticket | None = None
    calls: int = 0

    @classmethod
    def of(cls, project_id: int, provider: str, model: str, operation: str) -> Self:
        transport = BreakerScope(project_id, provider, model, operation, BreakerKind.TRANSPORT)
        return cls(transport, replace(transport, kind=BreakerKind.QUALITY))

    def limit(self, policy: RetryPolicy, attempts_made: int) -> RetryPolicy:
        """Return the policy that quality allows; without retries it ends with the attempts made."""
        self.admission = acquire(self.quality)
        if isinstance(self.admission, Allowed) or settings.FAILSOFT_BREAKER_POLICY == DENY:
            return policy
        retry = policy.retry.model_copy(update={"max_attempts": max(attempts_made, 1)})
        return replace(policy, retry=retry)

    def admit_call(self) -> Denied | None:
        if isinstance(self.admission, Denied) and settings.FAILSOFT_BREAKER_POLICY == DENY:
            return self.admission
        admission = acquire(self.transport)
        if isinstance(admission, Denied):
            return admission
        self.call = admission.ticket
        self.calls += 1
        return None

    @property
    def is_probing(self) -> bool:
        """Whether the admitted call is a probe, which is not retried."""
        return self.call is not None and self.call.probe is not None

    def renew(self) -> None:
        if isinstance(self.admission, Allowed):
            renew(self.quality, self.admission.ticket)
        if self.call is not None:
            renew(self.transport, self.call)

    def settle_call(self, reply: Reply) -> None:
        """Report the result of the call.

        One that was never sent, or refused for what it contains, counts as nothing: a goal that
        is too long must not stop the others.
        """
        if self.call is None:
            return
        ticket, self.call = self.call, None
        answer = reply.answer
        if isinstance(answer, Completion):
            report(self.transport, ticket, CallVerdict.GOOD)
        elif not reply.was_sent or isinstance(answer, RefusedContentError):
            report(self.transport, ticket, CallVerdict.NOTHING)
        else:
            report(self.transport, ticket, CallVerdict.BAD, answer.retry_after_seconds)

    def settle_attempts(self, ending: Ending) -> None:
        """Report how the attempts ended; without a call they count as nothing."""
        if not isinstance(self.admission, Allowed):
            return
        verdict = CallVerdict.NOTHING
        if self.calls and isinstance(ending, Succeeded):
            verdict = CallVerdict.GOOD
        if self.calls and isinstance(ending, Exhausted):
            verdict = CallVerdict.BAD
        report(self.quality, self.admission.ticket, verdict)
