"""A short-lived cache of expensive results with many readers.

1. A result younger than FAILSOFT_VERDICT_SECONDS is returned as it is.
2. An older one, up to LONGEST times as old, is returned too and refreshed in the background,
   so that regular readers never wait.
3. Otherwise the caller waits; concurrent callers wait for the same computation.

Each process has its own cache. A result comes with the time of its computation, which pages
show.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

import structlog
from django.conf import settings
from django.db import connection

from diagnostics import clock

T = TypeVar("T")
LONGEST = 6
"""How many times older than allowed a result may be while it is refreshed."""
MOST_KEPT = 256
log = structlog.get_logger(__name__)


class CachedResult(NamedTuple, Generic[T]):
    """A result and the time of its computation."""

    at: datetime
    answer: T


def run_beside(work: Callable[[], None]) -> None:
    """Queue work for the one refresh thread of this process."""
    _renewer().submit(_with_own_connection, work)


@cache
def _renewer() -> Executor:
    # Started on demand, and so after any fork.
    return ThreadPoolExecutor(1, "renewing")


def _with_own_connection(work: Callable[[], None]) -> None:
    try:
        work()
    finally:
        # Return it to the pool.
        connection.close()


@dataclass(slots=True)
class ResultCache(Generic[T]):
    beside: Callable[[Callable[[], None]], None] = run_beside
    _kept: OrderedDict[Hashable, CachedResult[T]] = field(default_factory=OrderedDict)
    _renewing: set[Hashable] = field(default_factory=set)
    _locks: dict[Hashable, Lock] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def get(self, key: Hashable, now: datetime, make: Callable[[datetime], T]) -> CachedResult[T]:
        """Return the result of a key; `make` computes it for a time."""
        seconds = timedelta(seconds=settings.FAILSOFT_VERDICT_SECONDS)
        if not seconds:
            return CachedResult(now, make(now))
        cached = self._kept.get(key)
        if cached is None or now - cached.at >= LONGEST * seconds:
            return self._await(key, now, make, seconds)
        if now - cached.at >= seconds:
            self._renew(key, make)
        return cached

    def _await(
        self, key: Hashable, now: datetime, make: Callable[[datetime], T], seconds: timedelta
    ) -> CachedResult[T]:
        with self._lock:
            own_lock = self._locks.setdefault(key, Lock())
        with own_lock:
            cached = self._kept.get(key)
            if cached is None or now - cached.at >= seconds:
                cached = self._keep(key, CachedResult(now, make(now)))
        with self._lock:
            self._locks.pop(key, None)
        return cached

    def _renew(self, key: Hashable, make: Callable[[datetime], T]) -> None:
        with self._lock:
            if key in self._renewing:
                return
            self._renewing.add(key)
        self.beside(lambda: self._refresh(key, make))

    def _refresh(self, key: Hashable, make: Callable[[datetime], T]) -> None:
        try:
            now = clock.now()
            self._keep(key, CachedResult(now, make(now)))
        except Exception:
            log.exception("answer_not_renewed")
        finally:
            self._renewing.discard(key)

    def _keep(self, key: Hashable, cached: CachedResult[T]) -> CachedResult[T]:
        with self._lock:
            self._kept[key] = cached
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return cached
