"""Runs of a goal as a page shows them: the graph, a window of steps, `__meta__`."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Max, Q

from agents.core.badges import TASK_STATUS, Badge
from agents.views.run_reading import UNDECIDED
from agents.views.step_rows import StepRow, graph_step, step_row
from diagnostics.core.charts.plan_graph import MOST_STEPS, GraphStep
from plans.core.results import validate_results
from plans.core.violations import Violation
from plans.models import Run, RunStep
from plans.reading import read_result

MOST_RUNS = 20
STEPS_SHOWN = 100


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as its card shows it."""

    run: Run
    badge: Badge
    graph: list[GraphStep]
    steps: list[StepRow]
    total: int
    next_first: int | None
    meta: str
    violations: list[Violation]
    undecided: int = 0

    @property
    def is_poison(self) -> bool:
        """Whether every worker that took it up died of it."""
        return self.run.state == Run.State.POISON

    @property
    def drawn(self) -> int:
        """How many steps the drawing shows."""
        return len(self.graph)


def runs_of(project_id: int, correlation_id: str, first: int) -> list[RunView]:
    """Read the runs of a goal, each with the steps that are drawn or listed.

    `first` is the position at which the tables begin; three queries, however many runs.
    """
    mine = Run.objects.filter(project_id=project_id, correlation_id=correlation_id)
    runs = list(mine.order_by("cycle", "created_at").defer("payload")[:MOST_RUNS])
    steps = RunStep.objects.filter(run__in=[run.pk for run in runs])
    sizes = {
        run_id: (total, last, undecided)
        for run_id, total, last, undecided in steps.order_by()
        .values_list("run_id")
        .annotate(Count("pk"), Max("position"), n_undecided=Count("pk", filter=UNDECIDED))
    }
    listed = Q(position__gte=first, position__lt=first + STEPS_SHOWN)
    by_run: dict[object, list[RunStep]] = defaultdict(list)
    for step in steps.filter(listed | Q(position__lt=MOST_STEPS)):
        by_run[step.run_id].append(step)
    return [_view(run, sorted(by_run[run.pk], key=_position), sizes, first) for run in runs]


def _position(step: RunStep) -> int:
    return step.position


def _view(
    run: Run,
    steps: Sequence[RunStep],
    sizes: Mapping[UUID, tuple[int, int, int]],
    first: int,
) -> RunView:
    past = first + STEPS_SHOWN
    total, last, undecided = sizes.get(run.pk, (0, 0, 0))
    tone = TASK_STATUS.get(run.task_status or "", "live")
    return RunView(
        run=run,
        badge=(tone, run.task_status or run.state),
        graph=[graph_step(step) for step in steps if step.position < MOST_STEPS],
        steps=[step_row(step) for step in steps if first <= step.position < past],
        total=total,
        next_first=past if last >= past else None,
        meta=json.dumps(run.meta, indent=2, ensure_ascii=False) if run.meta else "",
        violations=_violations(run, steps) if len(steps) == total else [],
        undecided=undecided,
    )


def _violations(run: Run, steps: Sequence[RunStep]) -> list[Violation]:
    """Check what is stored again before it is shown (S2-3); a running one is not whole."""
    if run.state != Run.State.ENDED:
        return []
    return validate_results([*(read_result(s).as_row() for s in steps), run.meta])
