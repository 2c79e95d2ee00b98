"""Whether this process is about to end: runs are then handed on between two steps."""

import signal
from types import FrameType

# Told to the processes of a worker by the one that hears SIGTERM.
STOP_SIGNAL = signal.SIGUSR2


class _Wish:
    to_stop = False


def is_stopping() -> bool:
    """Whether no further step is to be begun here."""
    return _Wish.to_stop


def listen() -> None:
    """Hear the signal from now on; for processes that execute tasks."""
    _Wish.to_stop = False
    signal.signal(STOP_SIGNAL, _note)


def _note(_number: int, _frame: FrameType | None) -> None:
    _Wish.to_stop = True
