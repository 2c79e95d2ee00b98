"""Answers that cost much and that many ask for again and again, kept for a moment.

1. One that is younger than FAILSOFT_VERDICT_SECONDS is given as it is.
2. One that is older, up to LONGEST times as old, is given too, and made anew beside the
   request; so nobody who looks regularly ever waits.
3. Otherwise the asker waits; whoever asks for the same meanwhile waits for that one.

Each process keeps its own. An answer comes with the time it was made at: pages say it.
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
"""An answer may be this many times older than it should be while a new one is made."""
MOST_KEPT = 256
log = structlog.get_logger(__name__)


class CachedAnswer(NamedTuple, Generic[T]):
    """An answer, and when it was made."""

    at: datetime
    answer: T


def run_beside(work: Callable[[], None]) -> None:
    """Let the one thread of this process that renews do something, when it comes to it."""
    _renewer().submit(_with_own_connection, work)


@cache
def _renewer() -> Executor:
    # Started when it is needed: after any fork.
    return ThreadPoolExecutor(1, "renewing")


def _with_own_connection(work: Callable[[], None]) -> None:
    try:
        work()
    finally:
        # It goes back to the pool.
        connection.close()


@dataclass(slots=True)
class KeptAnswers(Generic[T]):
    """Answers of one sort, by their key."""

    beside: Callable[[Callable[[], None]], None] = run_beside
    _kept: OrderedDict[Hashable, CachedAnswer[T]] = field(default_factory=OrderedDict)
    _renewing: set[Hashable] = field(default_factory=set)
    _locks: dict[Hashable, Lock] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def get(self, key: Hashable, now: datetime, make: Callable[[datetime], T]) -> CachedAnswer[T]:
        """Return the answer of a key; `make` is told for when."""
        seconds = timedelta(seconds=settings.FAILSOFT_VERDICT_SECONDS)
        if not seconds:
            return CachedAnswer(now, make(now))
        found = self._kept.get(key)
        if found is None or now - found.at >= LONGEST * seconds:
            return self._await(key, now, make, seconds)
        if now - found.at >= seconds:
            self._renew(key, make)
        return found

    def _await(
        self, key: Hashable, now: datetime, make: Callable[[datetime], T], seconds: timedelta
    ) -> CachedAnswer[T]:
        with self._lock:
            mine = self._locks.setdefault(key, Lock())
        with mine:
            found = self._kept.get(key)
            if found is None or now - found.at >= seconds:
                found = self._keep(key, CachedAnswer(now, make(now)))
        with self._lock:
            self._locks.pop(key, None)
        return found

    def _renew(self, key: Hashable, make: Callable[[datetime], T]) -> None:
        with self._lock:
            if key in self._renewing:
                return
            self._renewing.add(key)
        self.beside(lambda: self._make_again(key, make))

    def _make_again(self, key: Hashable, make: Callable[[datetime], T]) -> None:
        try:
            now = clock.now()
            self._keep(key, CachedAnswer(now, make(now)))
        except Exception:
            log.exception("answer_not_renewed")
        finally:
            self._renewing.discard(key)

    def _keep(self, key: Hashable, kept: CachedAnswer[T]) -> CachedAnswer[T]:
        with self._lock:
            self._kept[key] = kept
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return kept
