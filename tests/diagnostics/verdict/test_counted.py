"""Calls of rows of counts, in whichever way agents told them."""

import pytest

from diagnostics.queries.call_counts import UNSAID
from diagnostics.verdict.cells import COUNTED, CountCell, Dimensions, count_calls, read_cells

ROWS: list[tuple[dict[str, int], int, dict[str, int]]] = [
    # Nothing at all.
    ({}, 0, {}),
    # Every call was told: the second of a run failed twice, one was rescued.
    (
        {"attempts": 13, "succeeded": 9, "runs": 10, "degraded": 1, "repaired": 1}
        | {"truncated": 4},
        13,
        {"truncated": 4},
    ),
    # Only how runs ended: one was rescued, so it had two calls.
    ({"runs": 10, "degraded": 2, "repaired": 1}, 11, {UNSAID: 3}),
    # The provider gave no answer, says the end of two of them.
    ({"runs": 10, "degraded": 3, "provider_failed": 2}, 10, {"call_provider_error": 2, UNSAID: 1}),
    # Failing calls as events, and how runs ended beside: the good calls were not told.
    (
        {"attempts": 5, "runs": 100, "degraded": 2, "repaired": 1, "not_json": 5},
        103,
        {"not_json": 5},
    ),
    # One agent told its calls, another only its runs: both count.
    (
        {"attempts": 11, "succeeded": 9, "runs": 60, "degraded": 21, "repaired": 1}
        | {"not_json": 2},
        61,
        {"not_json": 2, UNSAID: 20},
    ),
    # A run that was rescued, its failing call in the slot before.
    ({"attempts": 1, "succeeded": 1, "runs": 1, "repaired": 1}, 1, {}),
    # It gave up without an answer, and said why call by call.
    (
        {"attempts": 2, "runs": 1, "degraded": 1, "provider_failed": 1} | {"call_timeout": 2},
        2,
        {"call_timeout": 2},
    ),
    # A good answer that asked for a tool nobody registered.
    ({"attempts": 1, "succeeded": 1, "runs": 1, "unknown_tool": 1}, 1, {"unknown_tool": 1}),
]


@pytest.mark.parametrize(("told", "calls", "failures"), ROWS)
def test_calls_are_counted_however_they_were_told(
    told: dict[str, int], calls: int, failures: dict[str, int]
) -> None:
    counted = count_calls([told.get(name, 0) for name in COUNTED])
    assert counted.calls == calls
    assert counted.failures == failures
    assert counted.runs == told.get("runs", 0)
    assert counted.degraded == told.get("degraded", 0)


def test_the_end_of_a_run_is_no_second_failure_because_it_does_not_say_who_served() -> None:
    place = Dimensions("openai", "gpt-4o-mini", node="plan")
    by_azure = place._replace(served="gpt-4o-mini at azure")
    rows = {
        by_azure: {"attempts": 13, "succeeded": 9, "runs": 9, "truncated": 4},
        place: {"attempts": 1, "runs": 2, "degraded": 2, "call_timeout": 1},
    }

    cells = read_cells(
        (where, [told.get(name, 0) for name in COUNTED]) for where, told in rows.items()
    )

    assert list(cells) == [
        CountCell(by_azure, 13, {"truncated": 4}, runs=9),
        CountCell(place, 1, {"call_timeout": 1}, runs=2, degraded=2),
    ]
