"""The `__meta__` entry: the summary of a whole plan."""

from dataclasses import dataclass, field

from failsoft.plans.contract import Meta, Stats, StepResult, TaskStatus, task_status
from failsoft.plans.resolution import ResolvedPlan
from failsoft.plans.violations import quote

_SHOWN_STEPS = 3


@dataclass(slots=True)
class Progress:
    """The results of the steps of a plan so far, by index.

    Record results in an order that respects dependencies. `roots` maps each step that is not
    ok to its root cause: itself, or a direct or indirect dependency.
    """

    results: dict[int, StepResult] = field(default_factory=dict)
    roots: dict[int, int] = field(default_factory=dict)

    def record(self, plan: ResolvedPlan, index: int, result: StepResult) -> None:
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
        """Return the first dependency that is ok but degraded."""
        for other in plan.steps[index].dependencies:
            result = self.results.get(other)
            if result is not None and result.is_degraded:
                return other
        return None


def summarise(plan: ResolvedPlan, progress: Progress) -> Meta:
    outcome_lists = _sort_steps(plan, progress)
    total = len(plan.steps)
    status = task_status(
        total=total,
        unresolved=len(outcome_lists.unresolved),
        failed=len(outcome_lists.failed),
        skipped=len(outcome_lists.skipped),
    )
    failures = len(outcome_lists.unresolved) + len(outcome_lists.failed)
    stats = Stats(
        total_steps=total,
        ok=total - failures - len(outcome_lists.skipped),
        skipped=len(outcome_lists.skipped),
        failed=failures,
    )
    blocked, failed = _list_ids(plan, outcome_lists)
    return Meta(
        ok=status is TaskStatus.COMPLETED,
        reason=_explain(plan, progress, status, outcome_lists),
        task_status=status,
        stats=stats,
        blocked_steps=blocked,
        failed_steps=failed,
    )


@dataclass(frozen=True, slots=True)
class _OutcomeLists:
    """The indices of the steps that are not ok.

    `unresolved`: their own dependencies could not be resolved. `failed`: other failures.
    `behind_failure`: the skipped steps whose root cause is a failure.
    """

    unresolved: list[int]
    failed: list[int]
    skipped: list[int]
    behind_failure: list[int]


def _sort_steps(plan: ResolvedPlan, progress: Progress) -> _OutcomeLists:
    outcome_lists = _OutcomeLists([], [], [], [])
    for step in plan.steps:
        result = progress.results[step.index]
        if result.skipped:
            outcome_lists.skipped.append(step.index)
            if not progress.results[progress.roots[step.index]].skipped:
                outcome_lists.behind_failure.append(step.index)
        elif step.defect is not None and step.defect.unresolved:
            outcome_lists.unresolved.append(step.index)
        elif not result.ok:
            outcome_lists.failed.append(step.index)
    return outcome_lists


def _list_ids(plan: ResolvedPlan, outcome_lists: _OutcomeLists) -> tuple[list[str], list[str]]:
    """Return the ids of blocked and of failed steps, in payload order.

    Only a forced plan has repeated ids; even then the two lists never overlap.
    """
    unresolved = _ids(plan, outcome_lists.unresolved)
    failed = _ids(plan, outcome_lists.failed)
    blocked = _ids(plan, sorted(outcome_lists.unresolved + outcome_lists.behind_failure))
    return (
        [name for name in blocked if name in unresolved or name not in failed],
        [name for name in failed if name not in unresolved],
    )


def _ids(plan: ResolvedPlan, indices: list[int]) -> dict[str, None]:
    return dict.fromkeys(plan.steps[index].step_id for index in indices)


def _explain(
    plan: ResolvedPlan, progress: Progress, status: TaskStatus, outcome_lists: _OutcomeLists
) -> str | None:
    if status is TaskStatus.COMPLETED:
        return None
    if not plan.steps:
        return "empty_plan: the plan has no steps"
    indices, verb = {
        TaskStatus.BLOCKED: (
            outcome_lists.unresolved,
            "had dependencies that could not be resolved",
        ),
        TaskStatus.FAILED: (outcome_lists.failed, "failed"),
        TaskStatus.PARTIAL: (outcome_lists.skipped, "were skipped"),
    }[status]
    shown = ", ".join(
        f"{quote(plan.steps[index].step_id)} ({progress.results[index].reason_code})"
        for index in indices[:_SHOWN_STEPS]
    )
    more = ", ..." if len(indices) > _SHOWN_STEPS else ""
    return f"{len(indices)} of {len(plan.steps)} steps {verb}: {shown}{more}"
