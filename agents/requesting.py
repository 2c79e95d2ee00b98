"""What the planner of a goal is asked: the raw goal, its bounds, and what happened so far."""

from agents.applying import describe_things
from agents.core.context import describe_check, describe_results
from agents.core.prompts import Request
from agents.fix_reading import hints_for
from agents.models import Goal
from agents.policies import offers_for, owner_of
from agents.reading import decided_checks
from agents.recording import schema_of
from plans import working
from plans.models import Run
from plans.reading import results_of


def request_of(goal: Goal) -> Request:
    """Build the request of the goal's present cycle; its raw text is in the working store."""
    raw = working.get(goal.project_id, owner_of(goal), "goal")
    wanted = [item["text"] for item in raw["constraints"] if not item["optional"]]
    optional = [item["text"] for item in raw["constraints"] if item["optional"]]
    schema = schema_of(goal)
    hints = hints_for(goal, schema)
    return Request(
        schema=schema,
        goal=raw["text"],
        tools=offers_for(goal),
        constraints=tuple(wanted),
        optional_constraints=tuple(optional),
        context=tuple(_context_of(goal)),
        things=tuple(describe_things(goal)),
        hints=hints.told,
        withheld_patterns=hints.withheld,
    )


def _context_of(goal: Goal) -> list[str]:
    runs = Run.objects.filter(project_id=goal.project_id, correlation_id=goal.correlation_id)
    lines = []
    for run in runs.order_by("cycle", "id"):
        lines += describe_results(run.cycle, results_of(run))
    for row in decided_checks(goal):
        told = row.decision or "", row.reason, row.reasons
        lines.append(describe_check(row.cycle, *told))
    answers = working.get_all(goal.project_id, owner_of(goal), "answers")
    return [*lines, *answers.get("answers", [])]
