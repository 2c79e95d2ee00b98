"""A limit on how long a step waits for a tool, and on how many tools go on after it."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

import structlog
from django.db import connections

from plans.core.execution import ToolRefusedError, ToolTimeoutError

logger = structlog.get_logger(__name__)

MOST_LEFT_BEHIND = 16
_Answer = tuple[bool, object]


class _LeftBehind:
    """Calls of this process whose time was over and which go on all the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.threads: set[threading.Thread] = set()

    def add(self, thread: threading.Thread) -> None:
        with self._lock:
            self.threads.add(thread)

    def count(self) -> int:
        with self._lock:
            self.threads = {thread for thread in self.threads if thread.is_alive()}
            return len(self.threads)


_left_behind = _LeftBehind()


def call_within(seconds: float, function: Callable[[object], object], argument: object) -> object:
    """Return what the function returns, or raise what it raises, within the time.

    Raises ToolTimeoutError after that. Python cannot stop a thread: a function that
    ignores its limit goes on in a daemon thread whose answer nobody reads. While 16
    such threads live in this process, ToolRefusedError (`tool_busy`) is raised instead
    of a further call.
    """
    if _left_behind.count() >= MOST_LEFT_BEHIND:
        logger.error("tools_left_behind", count=MOST_LEFT_BEHIND)
        text = f"{MOST_LEFT_BEHIND} calls whose time was over still go on in this process."
        raise ToolRefusedError("tool_busy", text)
    answers: SimpleQueue[_Answer] = SimpleQueue()
    thread = threading.Thread(target=_answer, args=(answers, function, argument), daemon=True)
    thread.start()
    try:
        succeeded, value = answers.get(timeout=seconds)
    except Empty:
        _left_behind.add(thread)
        raise ToolTimeoutError(f"no answer within {seconds:g} s") from None
    if not succeeded:
        assert isinstance(value, BaseException)  # noqa: S101 - _answer puts nothing else
        raise value
    return value


def _answer(
    answers: SimpleQueue[_Answer],
    function: Callable[[object], object],
    argument: object,
) -> None:
    try:
        answer: _Answer = True, function(argument)
    except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
        answer = False, error
    # A tool may have asked the database, in this thread's own connection.
    connections.close_all()
    answers.put(answer)
