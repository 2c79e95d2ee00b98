"""A limit on how long a step waits for a tool."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from plans.core.execution import ToolTimeoutError

_Answer = tuple[bool, object]


def call_within(
    seconds: float, function: Callable[[object], object], argument: object
) -> object:
    """Return what the function returns, or raise what it raises, within the time.

    Raises ToolTimeoutError after that. Python cannot stop a thread: a function that
    ignores its limit goes on in a daemon thread whose answer nobody reads.
    """
    answers: SimpleQueue[_Answer] = SimpleQueue()
    threading.Thread(
        target=_answer, args=(answers, function, argument), daemon=True
    ).start()
    try:
        succeeded, value = answers.get(timeout=seconds)
    except Empty:
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
        answers.put((True, function(argument)))
    except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
        answers.put((False, error))
