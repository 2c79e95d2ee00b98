"""Threads that take ready steps until none is left: the caller is one of them.

A plan whose steps wait for each other never has a second thread; a wide one has as many
as the limit allows, and none of them waits for another to hand it work.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future

from django.db import connections

from plans.core.frontier import Frontier
from plans.runners.threads import KeptThreads

crew_threads = KeptThreads("plans-step")


class Crew:
    """Performs the steps of a frontier, at most `limit` at a time.

    `perform(index)` runs a step and stores its result; `is_over()` is asked before each
    and tells whether to leave the rest. What `perform` raises ends the work and is
    raised to the caller, after the steps under way have ended.
    """

    def __init__(
        self,
        frontier: Frontier,
        perform: Callable[[int], None],
        is_over: Callable[[], bool],
        limit: int,
    ) -> None:
        self._frontier = frontier
        self._perform = perform
        self._is_over = is_over
        self._limit = limit
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._busy = self._waiting = 0
        self._mates: list[Future[None]] = []
        self._failure: BaseException | None = None

    def work(self) -> None:
        """Take part until there is nothing left to do."""
        try:
            self._take_part()
        except BaseException as error:  # noqa: BLE001 - a time limit, while it waited
            self._fail(error)
        for mate in self._mates:
            mate.result()
        if self._failure is not None:
            raise self._failure

    def _take_part(self) -> None:
        done: int | None = None
        error: BaseException | None = None
        while (index := self._next(done, error)) is not None:
            done = index
            try:
                self._perform(index)
            except BaseException as raised:  # noqa: BLE001 - raised again by work()
                error = raised

    def _next(self, done: int | None, error: BaseException | None) -> int | None:
        """Note the end of a step, and take the next one; one visit for both."""
        with self._lock:
            if done is not None:
                self._note_end(done, error)
            while not self._frontier and self._busy and self._failure is None:
                self._waiting += 1
                self._changed.wait()
                self._waiting -= 1
            if not self._frontier or self._failure is not None or self._is_over():
                self._changed.notify_all()
                return None
            index = self._frontier.take()
            self._busy += 1
            if self._frontier and not self._waiting:
                self._call_mate()
            return index

    def _call_mate(self) -> None:
        if len(self._mates) < self._limit - 1:
            self._mates.append(crew_threads.submit(self._help))

    def _help(self) -> None:
        try:
            self._take_part()
        finally:
            connections.close_all()

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._failure = self._failure or error
            self._changed.notify_all()

    def _note_end(self, index: int, error: BaseException | None) -> None:
        self._busy -= 1
        if error is None:
            self._frontier.finish(index)
        else:
            self._failure = self._failure or error
        if self._waiting:
            self._changed.notify_all()
