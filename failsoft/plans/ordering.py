"""The order of steps: Kahn's algorithm on index arrays, cycles named, no recursion."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_Graph = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Ordering:
    """Every step in an order that respects its dependencies, and the cycles among them.

    `order` holds all indices, those of cycles too. `cycle_of` maps each step that waits
    for itself through others to such a cycle, as a path of indices; steps that merely
    wait for a cycle are not in it.
    """

    order: list[int]
    cycle_of: dict[int, list[int]] = field(default_factory=dict)


def order_steps(dependencies: _Graph) -> Ordering:
    """Order the steps; `dependencies[i]` holds the indices that step i waits for.

    Payload order wins wherever dependencies leave a choice. A step must not list
    itself. Linear in steps and dependencies but for the choice among ready steps.
    """
    if all(not waits_for or max(waits_for) < own for own, waits_for in enumerate(dependencies)):
        return Ordering(list(range(len(dependencies))))
    order = _kahn(dependencies)
    if len(order) == len(dependencies):
        return Ordering(order)
    return _order_with_cycles(dependencies, order)


class Frontier:
    """The steps that are ready; results of some release others, in payload order."""

    def __init__(self, dependents: _Graph, awaited: Mapping[int, int]) -> None:
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
        for dependent in self._dependents[index]:
            left = self._awaited.get(dependent)
            if left is not None:
                self._awaited[dependent] = left - 1
                if left == 1:
                    heapq.heappush(self._ready, dependent)

    def awaited(self, indices: Iterable[int]) -> dict[int, int]:
        """Return how many results each of these steps still waits for."""
        return {index: self._awaited[index] for index in indices}


def _kahn(dependencies: _Graph) -> list[int]:
    awaited = {index: len(waits_for) for index, waits_for in enumerate(dependencies)}
    frontier = Frontier(reverse(dependencies), awaited)
    order: list[int] = []
    while frontier:
        order.append(frontier.take())
        frontier.finish(order[-1])
    return order


def reverse(dependencies: _Graph) -> list[list[int]]:
    """Return for each step the indices of those that wait for it."""
    dependents: list[list[int]] = [[] for _ in dependencies]
    for index, waits_for in enumerate(dependencies):
        for dependency in waits_for:
            dependents[dependency].append(index)
    return dependents


def _order_with_cycles(dependencies: _Graph, done: list[int]) -> Ordering:
    """Order as if no step of a cycle waited for another step of the same cycle."""
    group_of = _groups(dependencies, set(range(len(dependencies))).difference(done))
    cut = [
        _without_group(waits_for, group_of.get(index), group_of)
        for index, waits_for in enumerate(dependencies)
    ]
    members: dict[int, list[int]] = {}
    for index in sorted(group_of):
        members.setdefault(group_of[index], []).append(index)
    cycle_of: dict[int, list[int]] = {}
    for group in members.values():
        if len(group) > 1:
            cycle_of |= dict.fromkeys(group, _walk(dependencies, group))
    return Ordering(_kahn(cut), cycle_of)


def _without_group(
    waits_for: Sequence[int], group: int | None, group_of: dict[int, int]
) -> Sequence[int]:
    if group is None:
        return waits_for
    return [other for other in waits_for if group_of.get(other) != group]


def _walk(dependencies: _Graph, group: list[int]) -> list[int]:
    """Return one cycle of a strongly connected group, reached from its first member."""
    inside = set(group)
    seen: dict[int, int] = {}
    path: list[int] = []
    index = group[0]
    while index not in seen:
        seen[index] = len(path)
        path.append(index)
        index = next(other for other in dependencies[index] if other in inside)
    return path[seen[index] :]


def _groups(dependencies: _Graph, among: set[int]) -> dict[int, int]:
    """Map each index to its strongly connected group (Tarjan, own stack)."""
    found: dict[int, int] = {}
    low: dict[int, int] = {}
    group_of: dict[int, int] = {}
    open_indices: list[int] = []
    for root in sorted(among):
        work = [(root, 0)] if root not in found else []
        while work:
            index, position = work.pop()
            if index not in found:
                found[index] = low[index] = len(found)
                open_indices.append(index)
            descended = False
            for place in range(position, len(dependencies[index])):
                other = dependencies[index][place]
                if other not in among or other in group_of:
                    continue
                if other not in found:
                    work += [(index, place), (other, 0)]
                    descended = True
                    break
                low[index] = min(low[index], low[other])
            if not descended and low[index] == found[index]:
                _close(index, open_indices, group_of)
    return group_of


def _close(root: int, open_indices: list[int], group_of: dict[int, int]) -> None:
    while True:
        index = open_indices.pop()
        group_of[index] = root
        if index == root:
            return
