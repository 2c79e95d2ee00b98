"""Stretches of time and what was counted in them."""

from diagnostics.store.windows import RunBucket, merged

CALM, BAD, NONE = RunBucket(10, 0), RunBucket(10, 4), RunBucket(0, 0)


def test_merging_keeps_every_run() -> None:
    assert merged([CALM, BAD, BAD], 2) == [RunBucket(20, 4), RunBucket(10, 4)]


def test_share_of_nothing_is_zero() -> None:
    assert NONE.share == 0
