"""Claims of runs, the clock for their deadlines, and which workers may take a run.

A plan was validated, and may be half executed, against certain tool arguments. A worker of
another release may have different tools: it refuses the run and stores why, and a worker
that fits takes it.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from diagnostics.clock import DatabaseNow
from diagnostics.store.leases import MAX_STARTS, Claim
from diagnostics.store.sql import execute
from failsoft.plans.contract import CONTRACT_VERSION
from failsoft.plans.resolution import ResolvedPlan
from failsoft.plans.violations import quote
from plans.models.run import Run
from plans.tools.definition import PYTHON, Tool
from plans.tools.registry import find_tool


def lease() -> timedelta:
    """Return how long a claim lasts without being renewed."""
    return timedelta(seconds=settings.FAILSOFT_RUN_LEASE_SECONDS)


@dataclass(frozen=True, slots=True)
class RunClaim(Claim):
    """A run that this worker holds.

    `starts` counts the claims since the run last made progress. `ahead` is the offset of the
    database's clock (seconds since 1970) to the monotonic clock of this process; `stop_at`
    is the deadline on the monotonic clock.
    """

    run: Run
    starts: int
    is_cancelled: bool
    ahead: float
    stop_at: float | None

    def now(self) -> float:
        """Return the seconds since 1970 by the database's clock."""
        return time.monotonic() + self.ahead


def claim_run(run_id: UUID) -> RunClaim | None:
    """Claim a run that is queued or went silent; return None when it is not free."""
    params = {"run": run_id, "lease": lease(), "most": MAX_STARTS}
    row = next(iter(execute("claim_run", params)), None)
    if row is None:
        return None
    token, starts, is_cancelled, now, deadline = row
    ahead = now - time.monotonic()
    stop_at = None if deadline is None else deadline - ahead
    run = Run.objects.get(pk=run_id)
    held_run = Run.objects.filter(pk=run_id, state=Run.State.RUNNING, fencing_token=token)
    return RunClaim(held_run, lease(), token, run, starts, is_cancelled, ahead, stop_at)


def claim_poisoned(run_id: UUID) -> RunClaim | None:
    """Claim a run whose workers died too often, and restart its count."""
    with transaction.atomic():
        silent = Run.objects.filter(
            pk=run_id,
            state=Run.State.RUNNING,
            lease_until__lt=DatabaseNow(),
            starts__gte=MAX_STARTS,
        )
        if silent.update(starts=F("starts") - 1) != 1:
            return None
        return claim_run(run_id)


logger = structlog.get_logger(__name__)

_SHORTEST_PAUSE_SECONDS = 5
_LONGEST_PAUSE_SECONDS = 300
# A run refused for this long reports that no worker fits.
STUCK_AFTER = timedelta(hours=1)
_SHOWN_DIGITS = 16


@lru_cache(maxsize=1_000)
def digest_of(tool: Tool) -> str:
    meaning = [tool.name, tool.schema(), tool.side_effects, tool.idempotent]
    text = json.dumps(meaning, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_SHOWN_DIGITS]


def pins_of(plan: ResolvedPlan) -> dict[str, object]:
    """Return the columns that bind a run to workers: with equal tools, by their digests.

    Tools of MCP servers are left out: they are the same for the workers of all releases.
    """
    names = dict.fromkeys(step.call for step in plan.steps)
    tools = {name: find_tool(name) for name in names}
    return {
        "contract_version": CONTRACT_VERSION,
        "release": settings.FAILSOFT_RELEASE,
        "tool_digests": {
            name: digest_of(tool)
            for name, tool in tools.items()
            if tool is not None and tool.source == PYTHON
        },
    }


def find_misfit(run: Run) -> str | None:
    """Return why this process must not execute a run; None when it may."""
    major = CONTRACT_VERSION.partition(".")[0]
    if run.contract_version.partition(".")[0] != major:
        return f"contract {run.contract_version} is wanted, this worker has {CONTRACT_VERSION}"
    return next(_differences(run.tool_digests), None)


def _differences(pinned: Mapping[str, str]) -> Iterator[str]:
    for name, digest in pinned.items():
        tool = find_tool(name)
        if tool is None:
            yield f"tool {quote(name)} is not registered here"
        elif digest_of(tool) != digest:
            yield f"tool {quote(name)} has other arguments or consequences here"


def refuse(run: Run, misfit: str) -> None:
    """Store why this worker refuses a run, and postpone the run."""
    seconds = min(_SHORTEST_PAUSE_SECONDS * 2 ** min(run.refusals, 10), _LONGEST_PAUSE_SECONDS)
    reason = f"Release {settings.FAILSOFT_RELEASE} refused it: {misfit}."
    since_long = Run.objects.filter(pk=run.pk, first_refused_at__lt=DatabaseNow() - STUCK_AFTER)
    if since_long.exists():
        reason = f"No worker fits for an hour; cancel it, or start one. {reason}"
        logger.error("run_fits_no_worker", run_id=str(run.id), refusals=run.refusals)
    until = DatabaseNow() + timedelta(seconds=seconds)
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(
            refused_reason=reason,
            refusals=F("refusals") + 1,
            first_refused_at=Coalesce("first_refused_at", DatabaseNow()),
        )
        Run.objects.filter(pk=run.pk, state=Run.State.QUEUED).update(lease_until=until)
        run.steps.filter(state="pending", lease_until__isnull=False).update(lease_until=until)
    logger.warning("run_refused", run_id=str(run.id), reason=misfit)
