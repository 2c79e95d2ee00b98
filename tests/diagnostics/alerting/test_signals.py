"""What a change is judged by."""

import pytest

from diagnostics.alerting.signals import FIRST_ATTEMPTS, Signal, measured


@pytest.mark.parametrize(
    ("told", "counted"),
    [
        # Ten runs: three first attempts fail, one of them twice; the second retry is good.
        ({"attempts": 14, "invalid": 4, "retries": 4, "tried_2": 3, "tried_3": 1, "good_2": 2,
          "good_3": 1}, (3, 10)),
        ({"attempts": 10, "invalid": 2, "call_timeout": 1}, (3, 10)),
        # A fallback that is only ever called second is judged by what it is told of.
        ({"attempts": 5, "invalid": 4, "retries": 5, "tried_2": 5, "good_2": 1}, (4, 5)),
        ({"runs": 7, "degraded": 2}, (2, 7)),
        # The answer with a tool that nobody has was well formed.
        ({"attempts": 10, "invalid": 1, "unknown_tool": 2}, (3, 10)),
        # An unchecked retry has not failed.
        ({"attempts": 3, "invalid": 1, "retries": 1}, (1, 2)),
    ],
)  # fmt: skip
def test_a_change_counts_first_attempts(told: dict[str, int], counted: tuple[int, int]) -> None:
    row = [told.get(name, 0) for name in FIRST_ATTEMPTS.columns]
    assert FIRST_ATTEMPTS.count(row) == counted
    assert measured(Signal.CALL_FAILURE_RATIO, detector="change") is FIRST_ATTEMPTS


def test_a_threshold_counts_all_calls() -> None:
    whole = measured(Signal.CALL_FAILURE_RATIO, detector="threshold")
    assert whole is not None
    told = {"attempts": 14, "invalid": 4, "retries": 4}
    assert whole.count([told.get(name, 0) for name in whole.columns]) == (4, 14)
