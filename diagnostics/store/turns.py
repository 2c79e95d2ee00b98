"""Work that is done project by project: each has a turn a minute, and each part a deadline.

Whose last turn ended longest ago comes first: a project that was not reached is the next. A part
that does not end in time, or fails, is passed over until the next turn, which the project's row
tells. A turn in which a part failed, or whose worker was killed, is given again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic

import structlog
from django.db.models import Min

from diagnostics import clock
from diagnostics.store.deadlines import OutOfTimeError, deadline
from diagnostics.store.models import ProjectTurn
from diagnostics.store.sql import change, fetch, statement
from diagnostics.store.windows import WIDTHS, Grain, floor

logger = structlog.get_logger(__name__)

LEFT_OPEN = timedelta(seconds=40)
"""A turn that did not end is given again after so long: no deadlines of a turn last longer."""
OVERDUE = timedelta(minutes=2)
"""So long after its last turn a project waits for the next one at most."""
ENSURE = """
INSERT INTO diagnostics_projectturn (project_id, minute, began_at, ended_at, passed_over)
SELECT id, to_timestamp(0), failsoft_now(), failsoft_now(), '{}' FROM diagnostics_project
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class TurnPart:
    """A part of a project's turn: what does it, returning how much it did, and how long it has."""

    name: str
    work: Callable[[int, datetime], int]
    seconds: float


def give_turns(parts: Sequence[TurnPart], now: datetime, seconds: float) -> int:
    """Give projects their turn of this minute; return how much all parts did.

    After so many seconds no other is begun: whoever comes next begins with those that are left.
    """
    change(ENSURE)
    parameters = {"minute": floor(now, WIDTHS[Grain.MINUTE]), "left_open": LEFT_OPEN}
    end, turns = monotonic() + seconds, 0
    while claimed := fetch(statement("claim_turn"), parameters):
        turns += _take_turn(claimed[0][0], parts, now)
        if monotonic() >= end:
            break
    return turns


def all_turns_until() -> datetime:
    """Return the time until which every project had its turns: now, unless one waits too long."""
    now, oldest = clock.now(), ProjectTurn.objects.aggregate(oldest=Min("ended_at"))["oldest"]
    return oldest if oldest and now - oldest > OVERDUE else now


def _take_turn(project_id: int, parts: Sequence[TurnPart], now: datetime) -> int:
    done, left, is_failed = 0, list[str](), False
    for part in parts:
        try:
            with deadline(part.seconds):
                done += part.work(project_id, now)
        except OutOfTimeError as error:
            logger.warning("passed_over", project=project_id, part=part.name, reason=str(error))
            left.append(part.name)
        except Exception:
            logger.exception("turn_failed", project=project_id, part=part.name)
            left.append(part.name)
            is_failed = True
    ended = {} if is_failed else {"ended_at": clock.now()}
    judged = {} if left else {"judged_at": now}
    ProjectTurn.objects.filter(pk=project_id).update(passed_over=left, **ended, **judged)
    return done
