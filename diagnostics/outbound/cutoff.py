"""The end of a conversation, whatever the other side does.

A limit for each read is no limit: who sends a byte a second stays below it for hours. A
timer closes the connection instead, under TLS too.
"""

import socket
import time
from contextlib import suppress
from threading import Lock, Timer
from types import TracebackType
from typing import Self


class Cutoff:
    """Ends the connections that it watches at a time of `time.monotonic`."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self._watched: list[socket.socket] = []
        self._lock = Lock()
        self._timer = Timer(self.seconds_left, self._end)
        self._timer.daemon = True

    @property
    def seconds_left(self) -> float:
        """The time that remains, never quite nothing: 0 would mean no limit."""
        return max(self.deadline - time.monotonic(), 0.001)

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.deadline

    def watch(self, connection: socket.socket) -> None:
        """Watch a connection; what wraps it later is ended with it."""
        with self._lock:
            self._watched.append(connection.dup())
        if self.is_over:
            self._end()

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            while self._watched:
                self._watched.pop().close()

    def _end(self) -> None:
        with self._lock:
            for connection in self._watched:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
