"""What a process is granted of a shared quota."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.ingest.quota_rules import (
    Bound,
    Day,
    Grant,
    QuotaLimits,
    TokenBucket,
    keep_share,
    settle,
)

NOW = datetime(2026, 11, 21, 14, 32, 10, tzinfo=UTC)
FULL = TokenBucket(100.0, NOW)
RATE = QuotaLimits(key_events_per_second=10, key_burst_events=100)


def take(
    limits: QuotaLimits, wanted: int, bucket: TokenBucket = FULL, day: Day | None = None
) -> Grant:
    return settle(limits, bucket, day or Day(), NOW, wanted=wanted, returned=0)


def test_a_grant_is_what_was_wanted_and_a_slice() -> None:
    grant = take(RATE, 5)
    assert (grant.tokens, grant.bound) == (15, None)
    assert (grant.bucket.tokens, grant.day.events) == (85.0, 15)


def test_an_empty_bucket_refuses_until_it_has_refilled() -> None:
    grant = take(RATE, 25, TokenBucket(5.0, NOW))
    assert (grant.tokens, grant.bound, grant.wait_seconds) == (0, Bound.RATE, 2)
    later = TokenBucket(5.0, NOW - timedelta(seconds=2))
    assert take(RATE, 25, later).bound is None


def test_what_was_not_used_returns_to_the_bucket_and_to_the_day() -> None:
    day = Day(events=40, minute_at=NOW.replace(second=0), minute_events=40)
    grant = settle(RATE, TokenBucket(0.0, NOW), day, NOW, wanted=10, returned=30)
    assert grant.tokens == 20
    assert grant.day.events == 40 - 30 + 20


@pytest.mark.parametrize(
    ("limits", "bound", "wait"),
    [
        (QuotaLimits(events_per_day=100), Bound.DAY, 9 * 3600 + 27 * 60 + 50),
        (QuotaLimits(events_per_month=1000), Bound.MONTH, 9 * 86400 + 9 * 3600 + 27 * 60 + 50),
    ],
)
def test_a_spent_day_or_month_refuses_until_it_is_over(
    limits: QuotaLimits, bound: Bound, wait: int
) -> None:
    grant = take(limits, 1, day=Day(events=100, month_before=900))
    assert (grant.bound, grant.wait_seconds) == (bound, wait)
    assert take(limits, 1, day=Day(events=90, month_before=800)).bound is None


def test_above_the_spike_bound_a_share_of_previews_is_kept() -> None:
    limits = QuotaLimits(spike_events_per_minute=600)
    minute = NOW.replace(second=0)
    assert keep_share(limits, Day(minute_at=minute, minute_events=600), NOW) == 1.0
    fast = Day(minute_at=minute, minute_events=2400)
    assert keep_share(limits, fast, NOW) == 0.25
    before = Day(minute_at=minute, last_minute_events=1440)
    assert keep_share(limits, before, NOW) == pytest.approx(0.5)
    assert keep_share(limits, before, NOW + timedelta(minutes=5)) == 1.0


@pytest.mark.parametrize(
    ("minutes", "kept"),
    [
        (0, (315, 200)),  # the same minute goes on
        (1, (15, 300)),  # the next one: this one was the last
        (2, (15, 0)),  # nothing came in the minute between
    ],
)
def test_a_new_minute_begins_with_nothing_and_remembers_only_the_one_before(
    minutes: int, kept: tuple[int, int]
) -> None:
    began = NOW.replace(second=0) - timedelta(minutes=minutes)
    day = Day(minute_at=began, minute_events=300, last_minute_events=200)
    grant = take(RATE, 5, day=day)
    assert (grant.day.minute_events, grant.day.last_minute_events) == kept


def test_a_batch_larger_than_the_burst_passes_when_the_bucket_is_full() -> None:
    small = QuotaLimits(key_events_per_second=10, key_burst_events=1000)
    assert take(small, 1000, TokenBucket(1000.0, NOW)).bound is None


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 30), st.integers(0, 5)), max_size=40))
def test_all_processes_together_never_take_more_than_the_limit(
    asked: list[tuple[int, int, int]],
) -> None:
    limits = replace(RATE, key_burst_events=1000, events_per_day=900)
    bucket, day, now = TokenBucket(1000.0, NOW), Day(), NOW
    taken = held = 0
    for wanted, used, seconds in asked:
        now += timedelta(seconds=seconds)
        returned = max(held - used, 0)
        taken += held - returned
        grant = settle(limits, bucket, day, now, wanted=wanted, returned=returned)
        bucket, day, held = grant.bucket, grant.day, grant.tokens
        assert taken + held == day.events
        assert day.events <= 900
        assert taken + held <= 1000 + 10 * (now - NOW).total_seconds()
