"""The rows of completion checks: created before the checker runs, settled after it.

A decided iteration is not checked again, even when its message is delivered twice. An
iteration whose worker died is checked again under a new id. Every write is fenced by the
caller.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import models, transaction
from django.db.models import Max

from diagnostics import clock
from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import redact
from failsoft.completion.specification import CheckSpec
from failsoft.completion.verdicts import CheckDecision, DecidedCheck, count_streak
from failsoft.identifiers import uuid7
from failsoft.json_values import clean_text
from plans.checks.checking import (
    REASON_BYTES,
    AskModel,
    CheckedWork,
    CheckerFailedError,
    NotAskedError,
    run_check,
)
from plans.models.check import CompletionCheck
from plans.models.run import Owner, owner_of

logger = structlog.get_logger(__name__)

PREVIEW_BYTES = 8 * 1024
CHECKER_CHARACTERS = 300
State = CompletionCheck.State


@dataclass(frozen=True, slots=True)
class Loop:
    """The owner of checks; `fence` locks its row, or raises when the claim was lost."""

    of: Owner
    correlation_id: str
    fence: Callable[[], None]
    # Called with the settled row in its transaction, to store events with it.
    on_settled: Callable[[CompletionCheck], None]


def checks_of(of: Owner) -> models.QuerySet[CompletionCheck]:
    checks = CompletionCheck.objects.filter(project_id=of.project_id, owner=owner_of(of))
    return checks.order_by("pk")


def decided_checks_of(of: Owner) -> list[DecidedCheck]:
    rows = checks_of(of).filter(state=State.DECIDED)
    return [
        DecidedCheck(CheckDecision(row.decision or ""), tuple(row.fingerprints), row.reason)
        for row in rows
    ]


def check_once(
    loop: Loop,
    spec: CheckSpec,
    subject: CheckedWork,
    *,
    cycle: int,
    run_id: UUID | None,
    ask_model: AskModel | None = None,
) -> CompletionCheck:
    """Check the work of a cycle, unless it is checked already; return the settled row."""
    settled_row = (
        checks_of(loop.of).filter(cycle=cycle, state__in=[State.DECIDED, State.FAILED]).last()
    )
    if settled_row is not None:
        return settled_row
    with transaction.atomic():
        loop.fence()
        row = _begin(loop, spec, cycle, run_id)
    try:
        outcome = run_check(spec, subject, row.check_id, ask_model)
    except NotAskedError:
        row.delete()
        raise
    except CheckerFailedError as error:
        row.state, row.ended_at = State.FAILED, clock.now()
        row.reason = redact(f"checker_failed: {clean_text(str(error))}", REASON_BYTES)
    else:
        row.state = State.DECIDED
        for column, value in outcome.shown().items():
            setattr(row, column, value)
        row.preview = redact(clean_text(outcome.output), PREVIEW_BYTES)
        check = DecidedCheck(outcome.verdict.decision, tuple(row.fingerprints), row.reason)
        counts = count_streak(spec, [*decided_checks_of(loop.of), check])
        row.undecidable_in_a_row = counts.undecidable
        row.same_in_a_row = counts.same
        row.stalled = counts.stalled
        row.ended_at = clock.now()
    with transaction.atomic():
        loop.fence()
        row.save()
        loop.on_settled(row)
    _log(row, spec)
    return row


def _begin(loop: Loop, spec: CheckSpec, cycle: int, run_id: UUID | None) -> CompletionCheck:
    earlier = checks_of(loop.of)
    earlier.filter(state=State.RUNNING).update(state=State.INTERRUPTED, ended_at=DatabaseNow())
    decided = earlier.filter(state=State.DECIDED).count()
    tries = earlier.filter(cycle=cycle).aggregate(last=Max("number"))["last"] or 0
    return CompletionCheck.objects.create(
        project_id=loop.of.project_id,
        owner=owner_of(loop.of),
        correlation_id=loop.correlation_id,
        run_id=run_id,
        cycle=cycle,
        iteration=decided + 1,
        number=tries + 1,
        check_id=str(uuid7(clock.now(), secrets.token_bytes(10))),
        kind=spec.kind,
        checker=redact(spec.checker[:CHECKER_CHARACTERS]),
        started_at=clock.now(),
    )


def _log(row: CompletionCheck, spec: CheckSpec) -> None:
    is_good = row.decision in (CheckDecision.COMPLETE, CheckDecision.INCOMPLETE)
    log = logger.info if is_good else logger.warning
    log(
        "completion_check",
        correlation_id=row.correlation_id,
        iteration=row.iteration,
        check_kind=row.kind,
        state=row.state,
        decision=row.decision,
        decision_source=row.source,
        check_id_match=row.check_id_match,
        reason=row.reason,
        undecidable_in_a_row=row.undecidable_in_a_row,
        undecidable_limit=spec.undecidable_limit,
        stalled=row.stalled,
    )
