"""Admission of events: buckets and counts are in PostgreSQL; processes take slices of them.

A request that fits the current slice needs no query. Otherwise one short transaction settles
with the shared rows; it does not wait for the disk, since a crash of the server loses only
the latest counts. Together all processes never admit more than the limits, except for slices
that a killed process had not used.
"""

from dataclasses import dataclass, field, fields
from datetime import UTC, date
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Sum
from rest_framework import status
from rest_framework.exceptions import APIException

from diagnostics import clock
from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.models import KeyBucket, Usage
from diagnostics.ingest.quota_rules import (
    Bound,
    Day,
    Grant,
    QuotaLimits,
    TokenBucket,
    events_last_minute,
    keep_share,
    settle,
)

# How long a slice and its share of previews are valid.
LEASE_SECONDS = 5.0
# A refused key is refused for this long without a query.
LONGEST_BLOCK_SECONDS = 1.0
MOST_LEASES = 10_000
LIMITS = "_known_limits"
Counted = TypeVar("Counted", Usage, KeyBucket)
MESSAGES = {
    Bound.RATE: "this key sends more events a second than it may",
    Bound.DAY: "the project has sent all events of this day",
    Bound.MONTH: "the project has sent all events of this month",
}


class QuotaExceededError(APIException):
    """429: nothing was stored; send the same request again after `Retry-After`."""

    status_code = status.HTTP_429_TOO_MANY_REQUESTS

    def __init__(self, bound: Bound, wait_seconds: int) -> None:
        super().__init__(MESSAGES[bound], f"quota_{bound}")
        self.wait = wait_seconds


@dataclass
class _Lease:
    """The part of one key's quota that this process holds."""

    tokens: int = 0
    keep_share: float = 1.0
    until: float = 0.0
    blocked_until: float = 0.0
    bound: Bound = Bound.RATE
    refused_until: float = 0.0
    sampled_out: int = 0
    refused: int = 0
    lock: Lock = field(default_factory=Lock)


leases: dict[int, _Lease] = {}


def limits_of(key: ApiKey) -> QuotaLimits:
    """Return the limits of a key: its project's own, else the installation's."""
    limits = {}
    for name in (limit.name for limit in fields(QuotaLimits)):
        own = getattr(getattr(key.project, "quota", None), name, None)
        limits[name] = int(getattr(settings, f"FAILSOFT_{name.upper()}") if own is None else own)
    return QuotaLimits(**limits)


def refuse_blocked(key: ApiKey) -> None:
    """Raise QuotaExceededError if this key was refused a moment ago, before the body is read."""
    lease = leases.get(key.pk)
    if lease is not None and monotonic() < lease.blocked_until:
        lease.refused += 1
        wait = max(round(lease.refused_until - monotonic()), 1)
        raise QuotaExceededError(lease.bound, wait)


def admit(key: ApiKey, count: int) -> float:
    """Take `count` events from the quota; return the share of previews to keep.

    Raises QuotaExceededError. Call it outside the transaction that stores.
    """
    # Read once per key object.
    limits: QuotaLimits = vars(key).get(LIMITS) or vars(key).setdefault(LIMITS, limits_of(key))
    if limits.are_none:
        return 1.0
    lease = _lease_of(key)
    with lease.lock:
        if monotonic() >= lease.until or lease.tokens < count:
            grant = _settle(lease, key, limits, count)
            lease.sampled_out = lease.refused = 0
            lease.tokens, lease.keep_share = grant.tokens, grant.keep_share
            lease.until = monotonic() + LEASE_SECONDS
            if grant.bound is not None:
                pause = min(float(grant.wait_seconds), LONGEST_BLOCK_SECONDS)
                lease.bound, lease.blocked_until = grant.bound, monotonic() + pause
                lease.refused_until = monotonic() + grant.wait_seconds
                raise QuotaExceededError(grant.bound, grant.wait_seconds)
        lease.tokens -= count
        return lease.keep_share


def note_sampled_out(key: ApiKey, count: int) -> None:
    """Count dropped previews; they are written with the next slice."""
    if count:
        _lease_of(key).sampled_out += count


def quota_status(key: ApiKey) -> dict[str, Any]:
    limits, now = limits_of(key), clock.now().astimezone(UTC)
    today = now.date()
    row = Usage.objects.filter(project_id=key.project_id, day=today).first()
    usage = row or Usage(project_id=key.project_id, day=today)
    return {
        "limits": limits,
        "today": usage,
        "events_this_month": usage.sent + _month_before(key, today, "sent"),
        "last_minute_events": events_last_minute(_day_of(usage), now),
        "preview_share": round(keep_share(limits, _day_of(usage), now), 4),
    }


def _lease_of(key: ApiKey) -> _Lease:
    if len(leases) >= MOST_LEASES:
        leases.clear()
    return leases.setdefault(key.pk, _Lease())


def _settle(lease: _Lease, key: ApiKey, limits: QuotaLimits, wanted: int) -> Grant:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit TO off")
        now = clock.now().astimezone(UTC)
        today = now.date()
        # Always in this order, to avoid deadlocks.
        usage = _lock(Usage(project_id=key.project_id, day=today))
        full_bucket = KeyBucket(api_key_id=key.pk, tokens=limits.key_burst_events, refilled_at=now)
        row = _lock(full_bucket)
        before = _month_before(key, today) if limits.events_per_month else 0
        day = _day_of(usage, before)
        bucket = TokenBucket(row.tokens, row.refilled_at)
        grant = settle(limits, bucket, day, now, wanted=wanted, returned=lease.tokens)
        refused = lease.refused + (wanted if grant.bound else 0)
        Usage.objects.filter(project_id=key.project_id, day=today).update(
            events=grant.day.events,
            minute_at=grant.day.minute_at,
            minute_events=grant.day.minute_events,
            last_minute_events=grant.day.last_minute_events,
            sampled_out=F("sampled_out") + lease.sampled_out,
            refused=F("refused") + refused,
        )
        tokens, refilled_at = grant.bucket.tokens, grant.bucket.refilled_at
        KeyBucket.objects.filter(pk=key.pk).update(tokens=tokens, refilled_at=refilled_at)
    return grant


def _lock(new: Counted) -> Counted:
    """Lock the row of this key, which is added if it is missing."""
    rows = type(new)._default_manager.select_for_update()
    row = rows.filter(pk=new.pk).first()
    if row is None:
        rows.bulk_create([new], ignore_conflicts=True)
        row = rows.get(pk=new.pk)
    return row


def _day_of(usage: Usage, month_before: int = 0) -> Day:
    return Day(
        usage.events, month_before, usage.minute_at, usage.minute_events, usage.last_minute_events
    )


def _month_before(key: ApiKey, today: date, column: str = "events") -> int:
    first = today.replace(day=1)
    days = Usage.objects.filter(project_id=key.project_id, day__gte=first, day__lt=today)
    return days.aggregate(total=Sum(column))["total"] or 0
