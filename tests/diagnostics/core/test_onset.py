"""Since when a series degrades."""

import pytest

from diagnostics.core.onset import Bucket, merged, onset

CALM, BAD, NONE = Bucket(10, 0), Bucket(10, 4), Bucket(0, 0)


@pytest.mark.parametrize(
    ("buckets", "expected"),
    [
        ([], None),
        ([CALM] * 20, None),
        ([CALM] * 10 + [BAD] * 5, 10),
        ([BAD] * 5, 0),  # as long as one looks back
        ([CALM] * 10 + [BAD] * 2 + [CALM] + [BAD] * 3, 10),  # one good stretch between
        ([CALM] * 5 + [BAD] * 3 + [CALM] * 12, None),  # over
        ([CALM] * 5 + [NONE] * 5 + [BAD] * 3, 10),  # silence is no trouble
        ([CALM] * 5 + [Bucket(1, 1)], None),  # a single failure is chance
    ],
)
def test_onset_is_the_bucket_after_the_last_zero(
    buckets: list[Bucket], expected: int | None
) -> None:
    assert onset(buckets, 0.04) == expected


def test_rate_at_its_own_high_baseline_is_no_onset() -> None:
    assert onset([Bucket(10, 4)] * 20, 0.4) is None


def test_series_without_a_past_can_have_an_onset() -> None:
    assert onset([CALM] * 3 + [BAD] * 3, None) == 3


def test_merging_keeps_every_run() -> None:
    assert merged([CALM, BAD, BAD], 2) == [Bucket(20, 4), Bucket(10, 4)]


def test_share_of_nothing_is_zero() -> None:
    assert NONE.share == 0
