"""What can go wrong on the way out."""

from collections.abc import Callable

# Sends what was read before, without the database, and returns what the receiver answered.
Sending = Callable[[], str]


class SendError(Exception):
    """The notification did not get through; the message says why.

    `unreachable` says that nobody answered at all: then a probe finds out when it is over.
    """

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable
