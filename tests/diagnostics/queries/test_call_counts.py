"""Sums of rollups as calls, ladders and latencies."""

import pytest

from diagnostics.analysis.statistics import AttemptTally
from diagnostics.queries.call_counts import (
    CALLS,
    EVERYTHING,
    add_counts,
    count_calls,
    kind_filter,
    latency_percentile,
    tallies_of,
)
from diagnostics.store.rollups import FAILURE_KINDS, INVALID, LATENCY_BOUNDS_MS


def sums(**counted: int) -> dict[str, int]:
    invalid = sum(counted.get(name, 0) for name in INVALID)
    return dict.fromkeys(EVERYTHING, 0) | {"invalid": invalid} | counted


def test_failed_calls_are_invalid_answers_and_calls_without_one() -> None:
    told = sums(attempts=100, truncated=7, call_timeout=2, unknown_tool=5, runs=90, degraded=3)
    found = count_calls({name: told[name] for name in CALLS})
    assert (found.calls, found.failed, found.runs, found.degraded) == (100, 9, 90, 3)
    assert found.by_kind == {"truncated": 7, "call_timeout": 2, "unknown_tool": 5}


def test_runs_that_were_posted_as_counts_stand_for_calls() -> None:
    found = count_calls(sums(runs=40, degraded=4, ok_first=36))
    assert (found.calls, found.failed) == (40, 4)
    assert found.by_kind == {"other_invalid": 4}


def test_failing_calls_beside_posted_outcomes_are_counted_against_runs() -> None:
    found = count_calls(sums(runs=4_900, degraded=150, ok_first=4_700, attempts=60, truncated=60))
    assert (found.calls, found.failed, found.noun) == (4_900, 60, "run")
    assert found.by_kind == {"truncated": 60}
    assert count_calls(sums(runs=50, attempts=49)).noun == "call"


def test_counts_add_up_kind_by_kind() -> None:
    one = count_calls(sums(attempts=10, truncated=1, runs=9))
    two = count_calls(sums(attempts=20, truncated=2, refusal=1, runs=18))
    both = add_counts([one, two])
    assert (both.calls, both.failed, both.runs) == (30, 4, 27)
    assert both.by_kind == {"truncated": 3, "refusal": 1}


def test_ladders_are_read_by_attempt_and_end_with_the_last_one_made() -> None:
    told = sums(
        attempts=150, retries=50, succeeded=125, tried_2=40, tried_3=10, good_2=30, good_3=5
    )
    assert tallies_of(told) == [AttemptTally(100, 90), AttemptTally(40, 30), AttemptTally(10, 5)]
    assert tallies_of(sums()) == []


def test_more_good_than_made_is_cut() -> None:
    assert tallies_of(sums(attempts=3, succeeded=9)) == [AttemptTally(3, 3)]


@pytest.mark.parametrize("kind", FAILURE_KINDS)
def test_every_kind_is_named_as_it_is_filtered_by(kind: str) -> None:
    assert not kind_filter(kind).startswith(("call_", "other_"))


def test_a_percentile_lies_inside_its_bucket() -> None:
    buckets = [0] * (len(LATENCY_BOUNDS_MS) + 1)
    buckets[3] = 100
    low, high = LATENCY_BOUNDS_MS[2], LATENCY_BOUNDS_MS[3]
    assert latency_percentile(buckets, 0.5) == pytest.approx((low + high) / 2)
    assert latency_percentile(buckets, 1.0) == high


def test_the_bucket_without_an_end_gives_its_beginning() -> None:
    buckets = [0] * len(LATENCY_BOUNDS_MS) + [4]
    assert latency_percentile(buckets, 0.95) == LATENCY_BOUNDS_MS[-1]
    assert latency_percentile([0, 0], 0.5) is None
