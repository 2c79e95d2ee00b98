"""What held a run up, and what brought it down."""

from hypothesis import given
from hypothesis import strategies as st

from agents.console.run_reading import StepTrace, find_critical_path, find_root_causes


def ran(position: int, end: float, *after: str, ok: bool = True) -> StepTrace:
    """A step that was called, until this second."""
    return StepTrace(position, f"s{position}", after, ok, False, end)


def skipped(position: int, *after: str) -> StepTrace:
    return StepTrace(position, f"s{position}", after, False, True)


def test_the_critical_path_goes_back_from_the_last_end_to_the_later_dependency() -> None:
    steps = [ran(0, 1), ran(1, 5), ran(2, 2, "s0"), ran(3, 9, "s2", "s1"), ran(4, 4, "s0")]
    assert find_critical_path(steps) == [1, 3]


def test_steps_that_were_not_called_are_on_no_critical_path() -> None:
    waiting = StepTrace(1, "s1", ["s0"], None, None)
    assert find_critical_path([ran(0, 1), waiting, skipped(2, "s1")]) == [0]
    assert find_critical_path([]) == []


def test_every_step_behind_a_failure_names_it() -> None:
    steps = [
        ran(0, 1, ok=False),
        skipped(1, "s0"),
        skipped(2, "s1", "s3"),
        ran(3, 1),
        skipped(4),
        skipped(5, "s4"),
    ]
    assert find_root_causes(steps) == {0: 0, 1: 0, 2: 0, 4: 4, 5: 4}


def test_a_failed_dependency_is_to_blame_before_a_skipped_one() -> None:
    steps = [skipped(0), ran(1, 1, ok=False), skipped(2, "s0", "s1")]
    assert find_root_causes(steps)[2] == 1


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=10))
def test_cycles_and_names_of_nobody_end(edges: list[list[int]]) -> None:
    steps = [
        skipped(position, *(f"s{other}" for other in after)) for position, after in enumerate(edges)
    ]
    assert find_root_causes(steps).keys() == set(range(len(edges)))
    ended = [
        ran(position, 1, *(f"s{other}" for other in after)) for position, after in enumerate(edges)
    ]
    assert len(find_critical_path(ended)) <= len(edges)


def test_a_chain_of_ten_thousand_is_traced_without_recursion() -> None:
    steps = [ran(0, 1, ok=False)]
    steps += [skipped(at, f"s{at - 1}") for at in range(1, 10_000)]
    assert set(find_root_causes(reversed(steps)).values()) == {0}
