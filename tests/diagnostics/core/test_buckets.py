"""Stretches of time and what was counted in them."""

from diagnostics.core.buckets import Bucket, merged

CALM, BAD, NONE = Bucket(10, 0), Bucket(10, 4), Bucket(0, 0)


def test_merging_keeps_every_run() -> None:
    assert merged([CALM, BAD, BAD], 2) == [Bucket(20, 4), Bucket(10, 4)]


def test_share_of_nothing_is_zero() -> None:
    assert NONE.share == 0
