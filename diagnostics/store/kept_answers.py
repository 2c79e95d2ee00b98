"""A short-lived cache of expensive results with many readers.

1. A result younger than FAILSOFT_VERDICT_SECONDS is returned as it is.
2. An older one, up to LONGEST times as old, is returned too and refreshed in the background,
   so that regular readers never wait.
3. Otherwise the caller waits; concurrent callers wait for the same computation. Within
   `limited_wait`, for a moment: then AnswerPendingError, and the computation goes on beside.

Each process has its own cache. A result comes with the time of its computation, which pages
show.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from threading import Event, Lock
from typing import Generic, NamedTuple, TypeVar

import structlog
from django.conf import settings
from django.db import connection

from diagnostics import clock

T = TypeVar("T")
LONGEST = 6
"""How many times older than allowed a result may be while it is refreshed."""
MOST_KEPT = 256
HURRY_SECONDS = 0.05
log = structlog.get_logger(__name__)
_hurry: ContextVar[float | None] = ContextVar("hurry", default=None)


class AnswerPendingError(Exception):
    """the result is being computed, and the caller does not wait for it"""


@contextmanager
def limited_wait(seconds: float | None = HURRY_SECONDS) -> Iterator[None]:
    """Wait for results no longer than so many seconds in all (None: as long as they take).

    Raises AnswerPendingError.
    """
    before = _hurry.set(None if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        _hurry.reset(before)


class CachedResult(NamedTuple, Generic[T]):
    at: datetime
    answer: T


def run_in_background(work: Callable[[], None]) -> None:
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
    beside: Callable[[Callable[[], None]], None] = run_in_background
    _kept: OrderedDict[Hashable, CachedResult[T]] = field(default_factory=OrderedDict)
    _renewing: dict[Hashable, Event] = field(default_factory=dict)
    _locks: dict[Hashable, Lock] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def get(self, key: Hashable, now: datetime, make: Callable[[datetime], T]) -> CachedResult[T]:
        """Return the result of a key; `make` computes it for a time."""
        seconds = timedelta(seconds=settings.FAILSOFT_VERDICT_SECONDS)
        if not seconds:
            return CachedResult(now, make(now))
        cached = self._kept.get(key)
        if cached is None or abs(now - cached.at) >= LONGEST * seconds:
            if (deadline := _hurry.get()) is not None:
                is_made = self._renew(key, make).wait(max(deadline - time.monotonic(), 0))
                if not is_made or key not in self._kept:
                    raise AnswerPendingError
            return self._make_once(key, now, make, seconds)
        if abs(now - cached.at) >= seconds:
            self._renew(key, make)
        return cached

    def _make_once(
        self, key: Hashable, now: datetime, make: Callable[[datetime], T], seconds: timedelta
    ) -> CachedResult[T]:
        with self._lock:
            own_lock = self._locks.setdefault(key, Lock())
        try:
            with own_lock:
                cached = self._kept.get(key)
                if cached is None or abs(now - cached.at) >= seconds:
                    cached = self._keep(key, CachedResult(now, make(now)))
                return cached
        finally:
            with self._lock:
                self._locks.pop(key, None)

    def _renew(self, key: Hashable, make: Callable[[datetime], T]) -> Event:
        with self._lock:
            if key in self._renewing:
                return self._renewing[key]
            ended = self._renewing[key] = Event()
        self.beside(lambda: self._refresh(key, make, ended))
        return ended

    def _refresh(self, key: Hashable, make: Callable[[datetime], T], ended: Event) -> None:
        try:
            seconds = timedelta(seconds=settings.FAILSOFT_VERDICT_SECONDS)
            self._make_once(key, clock.now(), make, seconds)
        except Exception:
            log.exception("answer_not_renewed")
        finally:
            self._renewing.pop(key, None)
            ended.set()

    def _keep(self, key: Hashable, cached: CachedResult[T]) -> CachedResult[T]:
        with self._lock:
            self._kept[key] = cached
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return cached
