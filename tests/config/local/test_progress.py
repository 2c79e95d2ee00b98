"""A start is waited for as long as it reaches new states or computes."""

import pytest

from config.local.supervisor import StartProgress


@pytest.mark.parametrize(
    ("cpu_seconds", "states", "is_over"),
    [
        ([0, 0, 0], [1, 1, 1], True),
        ([0, 0, 0], [1, 2, 3], False),
        ([0, 5, 10], [1, 1, 1], False),
        ([0, 5, 5.5], [1, 1, 1], True),
    ],
    ids=["idle", "new states", "computes", "computed at first"],
)
def test_progress_is_a_new_state_or_computing(
    cpu_seconds: list[float], states: list[int], is_over: bool
) -> None:
    used = iter(cpu_seconds)
    progress = StartProgress(10, 0.1, lambda: next(used), 0)
    over = [progress.is_over(11 * n, state) for n, state in enumerate(states)]
    assert any(over) == is_over
