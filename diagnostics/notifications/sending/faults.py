"""What can go wrong on the way out."""


class SendError(Exception):
    """The notification did not get through; the message says why.

    `unreachable` says that nobody answered at all: then a probe finds out when it is over.
    """

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable
