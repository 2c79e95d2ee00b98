"""What the page of a run reads: a number of queries that does not grow with the plan."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Case, Count, FloatField, Max, Q, When
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast, Extract

from agents.badges import Badge, run_badge, step_badge
from agents.console.headlines import StepCounts
from agents.goals.models import Goal
from agents.goals.records import runs_of
from diagnostics.web.charts.plan_graph import MOST_STEPS, GraphStep
from failsoft.plans.results import validate_results
from failsoft.plans.violations import Violation
from plans.models.run import Run, RunStep
from plans.runs.ended_runs import UNRESOLVED
from plans.runs.records import read_result

PAGE = 50
MOST_UNDECIDED = 50
TRACED = ("position", "step_id", "dependencies", "ok", "skipped")
CALLED_UNTIL = Case(
    When(started_at__isnull=False, then=Cast(Extract("ended_at", "epoch"), FloatField()))
)
# What a person is asked about: nobody knows whether it was done, or it killed workers.
UNDECIDED = Q(state=RunStep.State.FINAL, ok=False, reason__in=UNRESOLVED)
SHOWS: Mapping[str, Q] = {
    "not_ok": Q(ok=False),
    "running": Q(state="started"),
    "undecided": UNDECIDED,
}


class StepTrace(NamedTuple):
    """The outcome and timing of one step; `ok` is None until the step is final.

    `called_until` is the end of the tool call in seconds since 1970; None when the tool was
    not called or has not ended. A page reads thousands of these, and a number is read 40
    times as fast as a date.
    """

    position: int
    step_id: str
    dependencies: Sequence[str]
    ok: bool | None
    skipped: bool | None
    called_until: float | None = None


def find_critical_path(steps: Iterable[StepTrace]) -> list[int]:
    """Return the positions of the chain of steps that decided when the run ended.

    The chain goes from the step that ended last to its dependency that ended last, and so
    on. Only steps whose tool was called and has ended count.
    """
    ended = {step.step_id: step for step in steps if step.called_until is not None}
    path: dict[int, None] = {}
    step = _last(ended.values())
    while step is not None and step.position not in path:
        path[step.position] = None
        step = _last(ended[name] for name in step.dependencies if name in ended)
    return list(path)[::-1]


def find_root_causes(steps: Iterable[StepTrace]) -> dict[int, int]:
    """Return the position of the root cause of each step that is not ok.

    A failed step is its own root cause; so is a step that was skipped for another reason
    than a dependency, such as a cancelled run.
    """
    not_ok = {step.step_id: step for step in steps if step.ok is False}
    roots: dict[int, int] = {}
    for step in not_ok.values():
        chain = _chain(step, not_ok, roots)
        root = roots.get(chain[-1], chain[-1])
        roots.update(dict.fromkeys(chain, root))
    return roots


def _chain(step: StepTrace, not_ok: Mapping[str, StepTrace], roots: Mapping[int, int]) -> list[int]:
    """Follow the first dependency that is not ok, up to a root cause."""
    chain = {step.position: None}
    blocker = _blocker(step, not_ok)
    while blocker is not None and blocker.position not in chain:
        chain[blocker.position] = None
        if blocker.position in roots:
            break
        blocker = _blocker(blocker, not_ok)
    return list(chain)


def _blocker(step: StepTrace, not_ok: Mapping[str, StepTrace]) -> StepTrace | None:
    if not step.skipped:
        return None
    blockers = [not_ok[name] for name in step.dependencies if name in not_ok]
    return next((other for other in blockers if not other.skipped), next(iter(blockers), None))


def _last(steps: Iterable[StepTrace]) -> StepTrace | None:
    return max(steps, key=lambda step: (step.called_until, step.position), default=None)


@dataclass(frozen=True, slots=True)
class StepWindow:
    """Some steps of a run in the order of the payload, and where the next ones begin."""

    steps: Sequence[RunStep]
    previous: int | None
    following: int | None


def count_steps(run: Run) -> StepCounts:
    final = Q(state=RunStep.State.FINAL)
    counts = run.steps.aggregate(
        n_total=Count("pk"),
        n_ok=Count("pk", filter=final & Q(ok=True)),
        n_failed=Count("pk", filter=final & Q(ok=False, skipped=False)),
        n_skipped=Count("pk", filter=final & Q(skipped=True)),
        n_running=Count("pk", filter=Q(state=RunStep.State.STARTED)),
        n_undecided=Count("pk", filter=UNDECIDED),
    )
    return StepCounts(**{name.removeprefix("n_"): counts[name] for name in counts})


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
        return frozenset(self.critical)

    @cached_property
    def causes(self) -> Sequence[StepTrace]:
        return [self.all[position] for position in sorted(set(self.roots.values()))]

    def root_of(self, position: int) -> StepTrace | None:
        """Return the step that brought this one down, if another one did."""
        root = self.roots.get(position, position)
        return None if root == position else self.all[root]

    def named(self, step_ids: Sequence[str]) -> Sequence[StepTrace]:
        wanted = set(step_ids)
        return [trace for trace in self.all.values() if trace.step_id in wanted]


def read_window(run: Run, show: str, first: int) -> StepWindow:
    steps = run.steps.filter(SHOWS.get(show, Q())).order_by("position")
    window = list(steps.filter(position__gte=first)[: PAGE + 1])
    before = steps.filter(position__lt=first).order_by("-position") if first else steps.none()
    earlier = list(before.values_list("position", flat=True)[:PAGE])
    return StepWindow(
        steps=window[:PAGE],
        previous=earlier[-1] if earlier else None,
        following=window[PAGE].position if len(window) > PAGE else None,
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


OUTPUT_SHOWN = 2_000
SHORT_OUTPUT = 90


def step_row(
    step: RunStep, root: StepTrace | None = None, *, is_critical: bool = False
) -> Mapping[str, Any]:
    """Prepare a step; `root` is the step that brought it down, if another one did."""
    output = shown_json(step.output)
    return {
        "step": step,
        "badge": step_badge(step.state, ok=step.ok, skipped=step.skipped),
        "output": output,
        "is_short": len(output) <= SHORT_OUTPUT and "\n" not in output,
        "took": step.ended_at - step.started_at if step.started_at and step.ended_at else None,
        "root": root,
        "is_critical": is_critical,
    }


def graph_step(
    step: RunStep,
    roots: Mapping[int, int] | None = None,
    critical: frozenset[int] = frozenset(),
    url: str = "",
) -> GraphStep:
    tone, word = step_badge(step.state, ok=step.ok, skipped=step.skipped)
    return GraphStep(
        step_id=step.step_id,
        title=step.title,
        tool=step.tool or "",
        state=word.lower(),
        tone=tone,
        dependencies=tuple(step.dependencies),
        is_root=(roots or {}).get(step.position) == step.position,
        is_critical=step.position in critical,
        url=url,
    )


def shown_json(value: object, most: int = OUTPUT_SHOWN) -> str:
    """Write a JSON value for reading: on one line when it is short."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) > SHORT_OUTPUT and not isinstance(value, str):
        text = json.dumps(value, indent=2, ensure_ascii=False)
    return text if len(text) <= most else text[:most] + "…"


MOST_RUNS = 20
STEPS_SHOWN = 100


@dataclass(frozen=True, slots=True)
class RunCard:
    run: Run
    badge: Badge
    graph: list[GraphStep]
    steps: list[Mapping[str, Any]]
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
        return len(self.graph)


def run_cards(goal: Goal, first: int) -> list[RunCard]:
    """Read the runs of a goal, each with the steps that are drawn or listed.

    `first` is the position at which the tables begin; three queries, however many runs.
    """
    runs = list(runs_of(goal).defer("payload")[:MOST_RUNS])
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
    position = attrgetter("position")
    return [_view(run, sorted(by_run[run.pk], key=position), sizes, first) for run in runs]


def _view(
    run: Run, steps: Sequence[RunStep], sizes: Mapping[UUID, tuple[int, int, int]], first: int
) -> RunCard:
    past = first + STEPS_SHOWN
    total, last, undecided = sizes.get(run.pk, (0, 0, 0))
    violations: list[Violation] = []
    if run.state == Run.State.ENDED and len(steps) == total:
        # What is stored is checked again before it is shown.
        violations = validate_results([*(read_result(step).as_row() for step in steps), run.meta])
    return RunCard(
        run=run,
        badge=run_badge(run.state, run.task_status),
        graph=[graph_step(step) for step in steps if step.position < MOST_STEPS],
        steps=[step_row(step) for step in steps if first <= step.position < past],
        total=total,
        next_first=past if last >= past else None,
        meta=json.dumps(run.meta, indent=2, ensure_ascii=False) if run.meta else "",
        violations=violations,
        undecided=undecided,
    )
