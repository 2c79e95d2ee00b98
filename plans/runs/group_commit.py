"""The writer of an inline run: a thread that commits queued rows in groups.

While one transaction is being flushed, the results of the next steps are queued; they are
written by one statement. The same thread renews the lease while it is idle, and reads
whether the run was cancelled. A caller that has to wait for a commit does it itself when
the writer is idle, which saves two thread switches.

Inside a transaction of the caller, `DirectCommit` uses the connection of the caller.
"""

import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from typing import NamedTuple

from django.db import close_old_connections, connection

from plans.runs.claims import RunClaim
from plans.runs.step_statements import Outputs, StepStore, StoredRow
from plans.runs.worker_threads import writers

# How long results are collected while no caller waits for them.
_GATHER_SECONDS = 0.004
_MOST_QUEUED = 4_000
_NONE: Outputs = {}


class DirectCommit:
    """Stores each row immediately, on the connection of the caller."""

    def __init__(self, claim: RunClaim) -> None:
        self._store = StepStore(claim)
        self.is_cancelled = claim.is_cancelled

    def put(self, index: int, row: StoredRow, outputs: Outputs = _NONE) -> None:
        self.is_cancelled = self._store.write({index: row}, outputs)

    def put_now(self, index: int, row: StoredRow) -> None:
        self.put(index, row)

    def close(self) -> None:
        """Do nothing: every row is stored already."""


class _Queued(NamedTuple):
    """A queued row; `stored` is set when it is committed."""

    position: int
    row: StoredRow
    outputs: Outputs
    stored: threading.Event | None


class GroupCommit:
    """Stores rows from a separate thread, many in one transaction.

    Queueing a row takes no lock: append and popleft of a deque are atomic. Only an idle
    thread has to be woken.
    """

    def __init__(self, claim: RunClaim) -> None:
        self._store = StepStore(claim)
        self.is_cancelled = claim.is_cancelled
        self._queue: deque[_Queued] = deque()
        self._committing = threading.Lock()
        self._commits = 0
        lock = threading.Lock()
        # The thread waits for rows; a caller that fills the queue waits until it is drained.
        self._changed = threading.Condition(lock)
        self._drained = threading.Condition(lock)
        self._is_idle = self._is_urgent = self._is_closing = False
        self._failure: BaseException | None = None
        self._thread: Future[None] = writers.submit(self._work)

    def put(self, index: int, row: StoredRow, outputs: Outputs = _NONE) -> None:
        """Queue a row; block only when thousands are queued already.

        A later row of the same step replaces it.
        """
        if self._failure is not None:
            raise self._failure
        self._queue.append(_Queued(index, row, outputs, None))
        if self._is_idle:
            self._wake()
        elif len(self._queue) > _MOST_QUEUED:
            self._wait_for_room()

    def put_now(self, index: int, row: StoredRow) -> None:
        """Store a row and all before it; return when they are durable."""
        self._check()
        if connection.connection is not None and self._committing.acquire(False):
            try:
                self._queue.append(_Queued(index, row, _NONE, None))
                self._commit_queued()
            finally:
                self._committing.release()
            return
        stored = threading.Event()
        self._queue.append(_Queued(index, row, _NONE, stored))
        self._is_urgent = True
        self._wake()
        # A failure releases callers that wait; later ones raise it.
        if self._failure is None:
            stored.wait()
        self._check()

    def close(self) -> None:
        """Wait until every row is durable; raise the failure of the writer, if any."""
        self._is_closing = True
        self._wake()
        self._thread.result()
        self._check()

    def _wake(self) -> None:
        with self._changed:
            self._is_idle = False
            self._changed.notify()

    def _wait_for_room(self) -> None:
        with self._drained:
            while len(self._queue) > _MOST_QUEUED and self._failure is None:
                self._drained.wait()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        close_old_connections()
        try:
            while self._gather():
                with self._committing:
                    self._commit_queued()
        except BaseException as error:  # noqa: BLE001 - raised again where rows are put
            self._fail(error)

    def _gather(self) -> bool:
        """Wait until rows are due or the lease has to be renewed; return False at the end."""
        with self._changed:
            while not (self._is_urgent or self._is_closing or self._store.seconds_to_beat() <= 0):
                oldest = self._queue[0] if self._queue else None
                commits = self._commits
                self._changed.wait(_GATHER_SECONDS)
                if self._is_old(oldest):
                    break
                if oldest is None and commits == self._commits:
                    self._sleep()
            self._is_urgent = False
            return bool(self._queue) or not self._is_closing

    def _is_old(self, oldest: _Queued | None) -> bool:
        """Whether a row is still the oldest in the queue, so no other thread committed it."""
        try:
            return oldest is not None and self._queue[0] is oldest
        except IndexError:
            return False

    def _sleep(self) -> None:
        """Wait until a caller that queues a row wakes this thread."""
        self._is_idle = True
        if not (self._queue or self._is_urgent or self._is_closing):
            self._changed.wait(self._store.seconds_to_beat())
        self._is_idle = False

    def _commit_queued(self) -> None:
        """Commit the queued rows; the caller holds `_committing`."""
        queued = [self._queue.popleft() for _ in range(len(self._queue))]
        rows = {entry.position: entry.row for entry in queued}
        outputs = {name: output for entry in queued for name, output in entry.outputs.items()}
        try:
            self.is_cancelled = self._store.write_surely(rows, outputs)
        except BaseException:
            # Possibly a time limit in mid-write: `close` stores them.
            self._queue.extendleft(reversed(queued))
            self._wake()
            raise
        self._commits += 1
        self._release(queued)

    def _release(self, queued: Iterable[_Queued]) -> None:
        for entry in queued:
            if entry.stored is not None:
                entry.stored.set()
        with self._drained:
            self._drained.notify_all()

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._release(list(self._queue))


def open_commit(claim: RunClaim) -> DirectCommit | GroupCommit:
    """Return the writer of a claim: direct inside a transaction, else a thread."""
    return DirectCommit(claim) if connection.in_atomic_block else GroupCommit(claim)
