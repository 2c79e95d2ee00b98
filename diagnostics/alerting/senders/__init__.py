"""How a notification is sent: each sender takes its row and returns what the receiver answered."""

from collections.abc import Callable

from diagnostics.alerting.receipts import Receipts

# Sends what was read before, without the database, and returns what the receiver answered.
Sending = Callable[[], str]


class SendError(Exception):
    """The notification did not get through to everybody; the message says why.

    `unreachable` says that nobody answered at all: then a probe finds out when it is over.
    `receipts` are the answers for each address, where there are several.
    """

    def __init__(
        self, message: str, *, unreachable: bool = False, receipts: Receipts | None = None
    ) -> None:
        super().__init__(message)
        self.unreachable = unreachable
        self.receipts = receipts or {}
