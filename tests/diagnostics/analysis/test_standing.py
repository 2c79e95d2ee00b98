"""How a series stands."""

import pytest

from diagnostics.analysis.series import RatedSeries, RunCounts, SeriesStatus


@pytest.mark.parametrize(
    ("degraded", "runs", "usual", "standing"),
    [
        (24, 500, (60, 3000), SeriesStatus.RAISED),  # 4.8 % against 2 %, surely above
        (14, 500, (60, 3000), SeriesStatus.OK),  # 2.8 %: chance
        (24, 500, (4, 20), SeriesStatus.OK),  # too little is known of what is usual
        (400, 20_000, (3600, 300_000), SeriesStatus.OK),  # surely above, by less than a point
        (1, 12, (60, 3000), SeriesStatus.FEW_RUNS),
        (10, 12, (60, 3000), SeriesStatus.FEW_RUNS),
        (0, 0, (60, 3000), SeriesStatus.NO_RUNS),
    ],
)
def test_a_rate_surely_above_its_baseline_is_not_plainly_ok(
    degraded: int, runs: int, usual: tuple[int, int], standing: SeriesStatus
) -> None:
    counts = RunCounts(
        runs=runs, degraded=degraded, baseline_runs=usual[1], baseline_degraded=usual[0]
    )
    assert RatedSeries("a/b", "plan", counts).standing is standing
