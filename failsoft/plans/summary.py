"""The `__meta__` entry: how a whole plan ended."""

from dataclasses import dataclass, field

from failsoft.plans.contract import Meta, Stats, StepResult, TaskStatus, task_status
from failsoft.plans.resolution import ResolvedPlan
from failsoft.plans.violations import quote

_SHOWN_STEPS = 3


@dataclass(slots=True)
class Progress:
    """What is known of a plan's steps so far, by index.

    Record results in an order that respects dependencies. `roots` maps each step that
    is not ok to the step that caused it: itself, or through its dependencies another.
    """

    results: dict[int, StepResult] = field(default_factory=dict)
    roots: dict[int, int] = field(default_factory=dict)

    def record(self, plan: ResolvedPlan, index: int, result: StepResult) -> None:
        """Note the result of a step."""
        self.results[index] = result
        if result.ok:
            return
        blocker = self.blocker_of(plan, index) if result.skipped else None
        self.roots[index] = index if blocker is None else self.roots[blocker]

    def blocker_of(self, plan: ResolvedPlan, index: int) -> int | None:
        """Return the first dependency that is not ok, failed before skipped."""
        if not self.roots:
            return None
        not_ok = [other for other in plan.steps[index].dependencies if other in self.roots]
        failed = [other for other in not_ok if not self.results[other].skipped]
        return next(iter(failed + not_ok), None)

    def degraded_dependency_of(self, plan: ResolvedPlan, index: int) -> int | None:
        """Return the first dependency that is ok, but only after a fashion."""
        for other in plan.steps[index].dependencies:
            result = self.results.get(other)
            if result is not None and result.is_degraded:
                return other
        return None


def summarise(plan: ResolvedPlan, progress: Progress) -> Meta:
    """Return the closing entry of a plan whose steps all have results."""
    fates = _sort_out(plan, progress)
    total = len(plan.steps)
    status = task_status(
        total=total,
        unresolved=len(fates.unresolved),
        failed=len(fates.failed),
        skipped=len(fates.skipped),
    )
    failures = len(fates.unresolved) + len(fates.failed)
    stats = Stats(
        total_steps=total,
        ok=total - failures - len(fates.skipped),
        skipped=len(fates.skipped),
        failed=failures,
    )
    blocked, failed = _list_ids(plan, fates)
    return Meta(
        ok=status is TaskStatus.COMPLETED,
        reason=_explain(plan, progress, status, fates),
        task_status=status,
        stats=stats,
        blocked_steps=blocked,
        failed_steps=failed,
    )


@dataclass(frozen=True, slots=True)
class _Fates:
    """The steps that are not ok, as places in the plan.

    `unresolved`: their own dependencies could not be resolved. `failed`: otherwise.
    `behind_failure`: those of `skipped` that a failure is the root cause of.
    """

    unresolved: list[int]
    failed: list[int]
    skipped: list[int]
    behind_failure: list[int]


def _sort_out(plan: ResolvedPlan, progress: Progress) -> _Fates:
    fates = _Fates([], [], [], [])
    for step in plan.steps:
        result = progress.results[step.index]
        if result.skipped:
            fates.skipped.append(step.index)
            if not progress.results[progress.roots[step.index]].skipped:
                fates.behind_failure.append(step.index)
        elif step.defect is not None and step.defect.unresolved:
            fates.unresolved.append(step.index)
        elif not result.ok:
            fates.failed.append(step.index)
    return fates


def _list_ids(plan: ResolvedPlan, fates: _Fates) -> tuple[list[str], list[str]]:
    """Return the ids of blocked and of failed steps, in payload order.

    Only a forced plan has an id twice; even there the two lists never overlap.
    """
    stuck = _ids(plan, fates.unresolved)
    failed = _ids(plan, fates.failed)
    blocked = _ids(plan, sorted(fates.unresolved + fates.behind_failure))
    return (
        [name for name in blocked if name in stuck or name not in failed],
        [name for name in failed if name not in stuck],
    )


def _ids(plan: ResolvedPlan, indices: list[int]) -> dict[str, None]:
    return dict.fromkeys(plan.steps[index].step_id for index in indices)


def _explain(
    plan: ResolvedPlan, progress: Progress, status: TaskStatus, fates: _Fates
) -> str | None:
    if status is TaskStatus.COMPLETED:
        return None
    if not plan.steps:
        return "empty_plan: the plan has no steps"
    indices, what = {
        TaskStatus.BLOCKED: (fates.unresolved, "had dependencies that could not be resolved"),
        TaskStatus.FAILED: (fates.failed, "failed"),
        TaskStatus.PARTIAL: (fates.skipped, "were skipped"),
    }[status]
    shown = ", ".join(
        f"{quote(plan.steps[index].step_id)} ({progress.results[index].reason_code})"
        for index in indices[:_SHOWN_STEPS]
    )
    more = ", ..." if len(indices) > _SHOWN_STEPS else ""
    return f"{len(indices)} of {len(plan.steps)} steps {what}: {shown}{more}"
