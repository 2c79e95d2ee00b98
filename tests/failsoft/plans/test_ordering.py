"""Ordering: dependencies first, payload order where there is a choice, cycles named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.plans.ordering import order_steps


@pytest.mark.parametrize(
    ("dependencies", "order"),
    [
        ([], []),
        ([[], [0], [1]], [0, 1, 2]),
        ([[1], [2], []], [2, 1, 0]),
        ([[2], [], []], [1, 2, 0]),  # 1 is ready and comes first in the payload
        ([[], [3], [], []], [0, 2, 3, 1]),
        ([[1, 1], []], [1, 0]),  # a repeated dependency counts once or twice alike
    ],
)
def test_order(dependencies: list[list[int]], order: list[int]) -> None:
    ordering = order_steps(dependencies)
    assert (ordering.order, ordering.cycle_of) == (order, {})


@pytest.mark.parametrize(
    ("dependencies", "cycles"),
    [
        ([[1], [0]], {0: [0, 1], 1: [0, 1]}),
        ([[1], [2], [0]], {0: [0, 1, 2], 1: [0, 1, 2], 2: [0, 1, 2]}),
        # 2 only waits for the cycle.
        ([[1], [0], [1]], {0: [0, 1], 1: [0, 1]}),
        # 0 only waits for the cycle of 1 and 2.
        ([[1], [2], [1]], {1: [1, 2], 2: [1, 2]}),
        # 2 stands between two cycles and is in neither.
        ([[1], [0], [0, 3], [4], [3]], {0: [0, 1], 1: [0, 1], 3: [3, 4], 4: [3, 4]}),
    ],
)
def test_cycles(dependencies: list[list[int]], cycles: dict[int, list[int]]) -> None:
    ordering = order_steps(dependencies)
    assert ordering.cycle_of == cycles
    assert sorted(ordering.order) == list(range(len(dependencies)))


@given(
    st.integers(1, 12).flatmap(
        lambda count: st.lists(
            st.sets(st.integers(0, count - 1), max_size=4), min_size=count, max_size=count
        )
    )
)
def test_every_order_respects_what_is_not_on_a_cycle(graph: list[set[int]]) -> None:
    dependencies = [sorted(others - {own}) for own, others in enumerate(graph)]
    ordering = order_steps(dependencies)
    assert sorted(ordering.order) == list(range(len(graph)))
    place = {index: at for at, index in enumerate(ordering.order)}
    for own, others in enumerate(dependencies):
        for other in others:
            same_cycle = own in ordering.cycle_of and _reaches(dependencies, other, own)
            assert same_cycle or place[other] < place[own]
    for own in range(len(graph)):
        assert (own in ordering.cycle_of) == any(
            _reaches(dependencies, other, own) for other in dependencies[own]
        )
    for cycle in ordering.cycle_of.values():
        for here, there in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            assert there in dependencies[here]


def _reaches(dependencies: list[list[int]], start: int, goal: int) -> bool:
    visited, pending = set(), [start]
    while pending:
        index = pending.pop()
        if index == goal:
            return True
        if index not in visited:
            visited.add(index)
            pending += dependencies[index]
    return False
