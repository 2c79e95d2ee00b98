"""What the page of a run reads: a number of queries that does not grow with the plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Case, Count, FloatField, Q, QuerySet, When
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast, Extract

from agents.core.run_lines import StepCounts
from plans.core.tracing import StepTrace, find_critical_path, find_root_causes
from plans.models import Run, RunStep
from plans.resolving import UNRESOLVED

PAGE = 50
MOST_UNDECIDED = 50
TRACED = (
    "position",
    "step_id",
    "dependencies",
    "ok",
    "skipped",
)
CALLED_UNTIL = Case(
    When(
        started_at__isnull=False,
        then=Cast(Extract("ended_at", "epoch"), FloatField()),
    )
)
# What a person is asked about: nobody knows whether it was done, or it killed workers.
UNDECIDED = Q(state=RunStep.State.FINAL, ok=False, reason__in=UNRESOLVED)
SHOWS: Mapping[str, Q] = {
    "not_ok": Q(ok=False),
    "running": Q(state="started"),
    "undecided": UNDECIDED,
}


@dataclass(frozen=True, slots=True)
class Window:
    """Some steps of a run in the order of the payload, and where the next ones begin."""

    steps: Sequence[RunStep]
    previous: int | None
    following: int | None


def count_steps(run: Run) -> StepCounts:
    """Count the steps of a run by where they stand."""
    final = Q(state=RunStep.State.FINAL)
    found = run.steps.aggregate(
        n_total=Count("pk"),
        n_ok=Count("pk", filter=final & Q(ok=True)),
        n_failed=Count("pk", filter=final & Q(ok=False, skipped=False)),
        n_skipped=Count("pk", filter=final & Q(skipped=True)),
        n_running=Count("pk", filter=Q(state=RunStep.State.STARTED)),
        n_undecided=Count("pk", filter=UNDECIDED),
    )
    return StepCounts(**{name.removeprefix("n_"): found[name] for name in found})


class Traces:
    """How the steps of a run hang together; read once, whole."""

    def __init__(self, run: Run) -> None:
        rows = run.steps.order_by("position").values_list(*TRACED, CALLED_UNTIL)
        self.all = {row[0]: StepTrace(*row) for row in rows}

    @cached_property
    def roots(self) -> Mapping[int, int]:
        """The position of the root cause of each step that is not ok."""
        return find_root_causes(self.all.values())

    @cached_property
    def critical(self) -> Sequence[int]:
        """The positions of the critical path, in the order of time."""
        return find_critical_path(self.all.values())

    @cached_property
    def critical_set(self) -> frozenset[int]:
        """The same, for looking up."""
        return frozenset(self.critical)

    @cached_property
    def causes(self) -> Sequence[StepTrace]:
        """The steps that are root causes, in the order of the payload."""
        return [self.all[position] for position in sorted(set(self.roots.values()))]

    def root_of(self, position: int) -> StepTrace | None:
        """Return the step that brought this one down, if another one did."""
        root = self.roots.get(position, position)
        return None if root == position else self.all[root]

    def named(self, step_ids: Sequence[str]) -> Sequence[StepTrace]:
        """Return the steps of these ids."""
        wanted = set(step_ids)
        return [trace for trace in self.all.values() if trace.step_id in wanted]


def read_window(run: Run, show: str, first: int) -> Window:
    """Read the steps from position `first` on that are to be shown."""
    steps = _shown(run, show)
    found = list(steps.filter(position__gte=first)[: PAGE + 1])
    before = steps.filter(position__lt=first).order_by("-position") if first else steps.none()
    earlier = list(before.values_list("position", flat=True)[:PAGE])
    return Window(
        steps=found[:PAGE],
        previous=earlier[-1] if earlier else None,
        following=found[PAGE].position if len(found) > PAGE else None,
    )


def read_undecided(run: Run) -> Sequence[RunStep]:
    """Read the steps that wait for a person, without their outputs."""
    waiting = run.steps.filter(UNDECIDED).order_by("position")
    return list(waiting.defer("output")[:MOST_UNDECIDED])


def read_arguments(run: Run, position: int) -> Any:  # noqa: ANN401 - any JSON
    """Read the arguments of a step as the payload has them, redacted."""
    step = (
        Run.objects.filter(pk=run.pk)
        .annotate(step=KeyTransform(str(position), KeyTransform("steps", "payload")))
        .values_list("step", flat=True)
        .first()
    )
    if not isinstance(step, dict):
        return None
    tool = step.get("tool")
    return tool.get("args") if isinstance(tool, dict) else step.get("args")


def _shown(run: Run, show: str) -> QuerySet[RunStep]:
    return run.steps.filter(SHOWS.get(show, Q())).order_by("position")
