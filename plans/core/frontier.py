"""Which steps can begin: those whose dependencies all have results. Pure, linear."""

import heapq
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

from plans.core.resolution import ResolvedPlan


class Dependents:
    """The steps that wait for each step, by index."""

    def __init__(self, plan: ResolvedPlan) -> None:
        self._plan = plan

    @cached_property
    def of(self) -> list[list[int]]:
        """The indices of the steps that wait for each step."""
        found: list[list[int]] = [[] for _ in self._plan.steps]
        for step in self._plan.steps:
            for other in awaited_by(self._plan, step.index):
                found[other].append(step.index)
        return found


def awaited_by(plan: ResolvedPlan, index: int) -> tuple[int, ...]:
    """Return the steps that one waits for; a step that cannot run waits for none."""
    step = plan.steps[index]
    return step.dependencies if step.defect is None else ()


def count_awaited(plan: ResolvedPlan, final: Collection[int]) -> dict[int, int]:
    """Return for each step without a result how many it still waits for."""
    return {
        step.index: sum(other not in final for other in awaited_by(plan, step.index))
        for step in plan.steps
        if step.index not in final
    }


class Frontier:
    """The steps that are ready; results of some release others, in payload order."""

    def __init__(self, dependents: Dependents, awaited: Mapping[int, int]) -> None:
        self._dependents = dependents
        self._awaited = dict(awaited)
        self._ready = [index for index, count in awaited.items() if count == 0]
        heapq.heapify(self._ready)

    def __bool__(self) -> bool:
        """Whether a step is ready."""
        return bool(self._ready)

    def take(self) -> int:
        """Take the ready step that stands first in the payload."""
        return heapq.heappop(self._ready)

    def finish(self, index: int) -> None:
        """Release what waited for this step alone."""
        for dependent in self._dependents.of[index]:
            left = self._awaited.get(dependent)
            if left is not None:
                self._awaited[dependent] = left - 1
                if left == 1:
                    heapq.heappush(self._ready, dependent)

    def awaited(self, indices: Iterable[int]) -> dict[int, int]:
        """Return how many results each of these steps still waits for."""
        return {index: self._awaited[index] for index in indices}
