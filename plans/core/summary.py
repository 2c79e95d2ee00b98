"""The `__meta__` entry: how a whole plan ended (S2-26..32, X-5)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from plans.core.contract import Meta, Stats, StepResult, TaskStatus, task_status
from plans.core.resolution import ResolvedPlan
from plans.core.violations import quote

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
        not_ok = [
            other for other in plan.steps[index].dependencies if other in self.roots
        ]
        failed = [other for other in not_ok if not self.results[other].skipped]
        return next(iter(failed + not_ok), None)


def summarise(plan: ResolvedPlan, progress: Progress) -> Meta:
    """Return the closing entry of a plan whose steps all have results."""
    results = progress.results
    unresolved = [
        step.index for step in plan.steps if step.defect and step.defect.unresolved
    ]
    without_tool = set(unresolved)
    failed = [
        index
        for index, result in results.items()
        if result.failed and index not in without_tool
    ]
    skipped = [index for index in results if results[index].skipped]
    ended_by_failure = [
        index for index in skipped if not results[progress.roots[index]].skipped
    ]
    status = task_status(
        total=len(plan.steps),
        unresolved=len(unresolved),
        failed=len(failed),
        skipped=len(skipped),
    )
    own_failures = _ids(plan, failed)
    # Ids are unique but in a forced plan; even there the two lists never overlap.
    stuck = _ids(plan, unresolved)
    blocked = [
        name
        for name in _ids(plan, [*unresolved, *ended_by_failure])
        if name in stuck or name not in own_failures
    ]
    return Meta(
        ok=status is TaskStatus.COMPLETED,
        reason=_explain(plan, progress, status, unresolved, failed, skipped),
        task_status=status,
        stats=Stats(
            total_steps=len(plan.steps),
            ok=len(plan.steps) - len(unresolved) - len(failed) - len(skipped),
            skipped=len(skipped),
            failed=len(unresolved) + len(failed),
        ),
        blocked_steps=blocked,
        failed_steps=[name for name in own_failures if name not in stuck],
    )


def _ids(plan: ResolvedPlan, indices: Iterable[int]) -> dict[str, None]:
    """Return the ids in payload order, each once."""
    return dict.fromkeys(plan.steps[index].step_id for index in sorted(indices))


def _explain(
    plan: ResolvedPlan,
    progress: Progress,
    status: TaskStatus,
    unresolved: list[int],
    failed: list[int],
    skipped: list[int],
) -> str | None:
    if status is TaskStatus.COMPLETED:
        return None
    if not plan.steps:
        return "empty_plan: the plan has no steps"
    causes = {
        TaskStatus.BLOCKED: (unresolved, "had dependencies that could not be resolved"),
        TaskStatus.FAILED: (failed, "failed"),
        TaskStatus.PARTIAL: (skipped, "were skipped"),
    }
    indices, what = causes[status]
    shown = ", ".join(
        f"{quote(plan.steps[index].step_id)} ({progress.results[index].reason_code})"
        for index in sorted(indices)[:_SHOWN_STEPS]
    )
    more = ", ..." if len(indices) > _SHOWN_STEPS else ""
    return f"{len(indices)} of {len(plan.steps)} steps {what}: {shown}{more}"
