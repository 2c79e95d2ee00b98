"""What one more attempt would have brought to a goal that degraded."""

from collections.abc import Sequence
from datetime import timedelta

from agents.models import Attempt, Goal
from diagnostics import clock
from diagnostics.core.call_counts import CALLS, LADDERS, tallies_of
from diagnostics.core.query_language import Term
from diagnostics.core.retry_budgets import Rescue, one_more
from diagnostics.queries.events import window_for
from diagnostics.queries.models import sums_between

SPAN = timedelta(days=30)
DEGRADED = (Goal.Outcome.DEGRADED, Goal.Outcome.STUBBED)


def rescue_of(goal: Goal, attempts: Sequence[Attempt]) -> Rescue | None:
    """Measure the next attempt in the goal's own series, over the last 30 days.

    `attempts` are all of the goal, oldest first; the last ladder counts. None for goals
    that did not degrade, and where too few went further to tell.
    """
    if goal.outcome not in DEGRADED or not attempts or goal.language_model is None:
        return None
    last, model = attempts[-1], goal.language_model
    spent = sum((one.cycle, one.node) == (last.cycle, last.node) for one in attempts)
    terms = (
        Term("environment", goal.environment),
        Term("node", last.node),
        Term("provider", model.provider.name),
        Term("model", model.name),
    )
    now = clock.now()
    window = window_for(now - SPAN, now, terms)
    sums = sums_between(goal.project_id, window, terms, (*CALLS, *LADDERS))
    return one_more(tallies_of(sums), spent)
