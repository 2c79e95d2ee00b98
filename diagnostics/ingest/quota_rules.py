"""Quotas of a project and its keys: a token bucket, a day, a month and a spike bound.

Every process takes slices of the shared rows (`settle`), so most requests need no query.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil
from uuid import UUID

from failsoft.events import PostedEvent

LARGEST_BATCH = 1_000
SLICE_SECONDS = 1.0
LARGEST_SLICE = 5_000
SLICES_IN_A_DAY = 100
SLICES_IN_A_MINUTE = 20
LONGEST_RATE_WAIT = 60
MINUTE = timedelta(minutes=1)


class Bound(StrEnum):
    RATE = "rate"
    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """Limits in events; 0 is no limit."""

    key_events_per_second: int = 0
    key_burst_events: int = 0
    events_per_day: int = 0
    events_per_month: int = 0
    spike_events_per_minute: int = 0

    @property
    def are_none(self) -> bool:
        """Whether there are no limits, so that nothing has to be counted."""
        return replace(self, key_burst_events=0) == QuotaLimits()


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """A key's tokens as they were at a time."""

    tokens: float
    refilled_at: datetime


@dataclass(frozen=True, slots=True)
class Day:
    """What a project has sent on a day, in the current minute, and in the last one."""

    events: int = 0
    month_before: int = 0
    minute_at: datetime | None = None
    minute_events: int = 0
    last_minute_events: int = 0


@dataclass(frozen=True, slots=True)
class Grant:
    """The result of a settlement: the events granted, and the share of previews to keep.

    `bound` is None, or the limit that refused; then `wait_seconds` says for how long.
    """

    tokens: int
    keep_share: float
    bucket: TokenBucket
    day: Day
    bound: Bound | None = None
    wait_seconds: int = 0


def settle(
    limits: QuotaLimits, bucket: TokenBucket, day: Day, now: datetime, *, wanted: int, returned: int
) -> Grant:
    """Return unused tokens and grant the wanted events with a slice more.

    1. Refill the bucket; the unused tokens return to it and to the day.
    2. If less remains than wanted, refuse, naming the bound and the wait.
    3. Grant the wanted events and at most a slice more; count both at once.
    """
    filled = _refill(limits, bucket, now, returned)
    today = replace(_roll(day, now), events=max(day.events - returned, 0))
    today = replace(today, minute_events=max(today.minute_events - returned, 0))
    remaining = _remaining(limits, filled, today)
    need = min(wanted, max(limits.key_burst_events, LARGEST_BATCH))
    bound = min(remaining, key=lambda name: remaining[name])
    if remaining[bound] < need:
        wait = _wait(limits, bound, need - remaining[bound], now)
        share = keep_share(limits, today, now)
        return Grant(0, share, filled, today, bound, wait)
    granted = max(min(int(remaining[bound]), wanted + _slice(limits)), wanted)
    counted = replace(
        today, events=today.events + granted, minute_events=today.minute_events + granted
    )
    charged = granted if limits.key_events_per_second else 0
    emptied = replace(filled, tokens=filled.tokens - charged)
    # The slice taken ahead has not been sent yet.
    sent = replace(today, minute_events=today.minute_events + wanted)
    return Grant(granted, keep_share(limits, sent, now), emptied, counted)


def _refill(limits: QuotaLimits, bucket: TokenBucket, now: datetime, returned: int) -> TokenBucket:
    if not limits.key_events_per_second:
        return bucket
    seconds = max((now - bucket.refilled_at).total_seconds(), 0.0)
    tokens = bucket.tokens + returned + seconds * limits.key_events_per_second
    return TokenBucket(min(tokens, float(limits.key_burst_events)), now)


def _roll(day: Day, now: datetime) -> Day:
    """Start a new minute if the last one is over."""
    minute = now.replace(second=0, microsecond=0)
    if day.minute_at == minute:
        return day
    is_next = day.minute_at == minute - MINUTE
    last = day.minute_events if is_next else 0
    return replace(day, minute_at=minute, minute_events=0, last_minute_events=last)


def _remaining(limits: QuotaLimits, bucket: TokenBucket, day: Day) -> dict[Bound, float]:
    """Return what remains of each bound; without a bound, any number."""
    remaining = {Bound.RATE: float("inf"), Bound.DAY: float("inf"), Bound.MONTH: float("inf")}
    if limits.key_events_per_second:
        remaining[Bound.RATE] = bucket.tokens
    if limits.events_per_day:
        remaining[Bound.DAY] = limits.events_per_day - day.events
    if limits.events_per_month:
        remaining[Bound.MONTH] = limits.events_per_month - day.month_before - day.events
    # Finite, so that any slice can be taken without bounds.
    return {name: min(value, 2.0**40) for name, value in remaining.items()}


def _slice(limits: QuotaLimits) -> int:
    """Return how much a process takes ahead: at most about a second, a hundredth of a day."""
    sizes = [LARGEST_SLICE]
    if limits.key_events_per_second:
        sizes.append(ceil(limits.key_events_per_second * SLICE_SECONDS))
    if limits.spike_events_per_minute:
        sizes.append(limits.spike_events_per_minute // SLICES_IN_A_MINUTE)
    bounds = (limits.events_per_day, limits.events_per_month)
    sizes += [events // SLICES_IN_A_DAY for events in bounds if events]
    return min(sizes)


def _wait(limits: QuotaLimits, bound: Bound, missing: float, now: datetime) -> int:
    if bound is Bound.RATE:
        seconds = missing / limits.key_events_per_second
        return min(max(ceil(seconds), 1), LONGEST_RATE_WAIT)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if bound is Bound.DAY:
        until = midnight + timedelta(days=1)
    else:
        until = (midnight.replace(day=28) + timedelta(days=4)).replace(day=1)
    return max(ceil((until - now).total_seconds()), 1)


def keep_share(limits: QuotaLimits, day: Day, now: datetime) -> float:
    """Return the share of previews to keep: the bound over the rate of the last minute."""
    rate = events_last_minute(day, now)
    if not limits.spike_events_per_minute or not rate:
        return 1.0
    return min(limits.spike_events_per_minute / rate, 1.0)


def events_last_minute(day: Day, now: datetime) -> int:
    """Estimate the events of the last sixty seconds from two minutes of the clock."""
    if day.minute_at is None:
        return 0
    minutes = max((now - day.minute_at) / MINUTE, 0.0)
    if minutes < 1:
        return round(day.minute_events + day.last_minute_events * (1 - minutes))
    return round(day.minute_events * max(2 - minutes, 0.0))


LOW_BITS = 32


def is_kept(event_id: UUID, share: float) -> bool:
    """Whether the preview of an event belongs to the share that is kept.

    The same id gives the same result in every process, and a larger share keeps all that a
    smaller one keeps.
    """
    return (event_id.int & ((1 << LOW_BITS) - 1)) < share * (1 << LOW_BITS)


def count_sampled_out(events: Iterable[PostedEvent], share: float) -> int:
    return sum(
        event.raw_output_preview is not None and not is_kept(event.event_id, share)
        for event in events
    )
