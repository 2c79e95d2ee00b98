"""How a notification is sent: each sender takes its row and returns what the receiver answered.

A mail server answers for each address, and the first digit of its reply counts. 2: it has the
mail; 5: it will never take it; anything else: it is to be tried again (RFC 5321, 4.2.1). No
answer yet is an empty text.

Of HTTP the status counts, by the table below, and how long `Retry-After` asks to wait.
"""

from collections.abc import Callable, Mapping

Receipts = Mapping[str, str]
ACCEPTED = "250"
# Sends what was read before, without the database, and returns what the receiver answered.
Sending = Callable[[], str]
# The same message is refused again, or its receiver is gone. Others may end: a receiver that is
# being deployed answers 404, and whoever corrects an address wants what waited.
FINAL_STATUSES = frozenset({400, 410, 413, 414, 415, 422, 431})


def accepted(receipts: Receipts) -> list[str]:
    return [address for address, answer in receipts.items() if answer.startswith("2")]


def waiting(receipts: Receipts) -> list[str]:
    return [address for address, answer in receipts.items() if not answer.startswith(("2", "5"))]


def receipt_words(receipts: Receipts) -> str:
    """Say who has the mail, and what was answered for each of the others."""
    has_it, is_open = accepted(receipts), set(waiting(receipts))
    parts = [f"accepted for {', '.join(has_it)}"] if has_it else []
    for address, answer in receipts.items():
        if address not in has_it:
            state = "waiting" if address in is_open else "refused"
            parts.append(f"{state} for {address}" + (f": {answer}" if answer else ""))
    return "; ".join(parts)


class SendError(Exception):
    """The notification did not get through to everybody; the message says why.

    `unreachable` says that nobody answered at all: then a probe finds out when it is over.
    `receipts` are the answers for each address, where there are several. By the HTTP `status`,
    `is_final` says that no retry will help; `retry_after` is that header of the answer.
    """

    def __init__(
        self,
        message: str,
        *,
        unreachable: bool = False,
        receipts: Receipts | None = None,
        status: int = 0,
        retry_after: str = "",
    ) -> None:
        super().__init__(message)
        self.unreachable = unreachable
        self.receipts = receipts or {}
        self.is_final = status in FINAL_STATUSES
        self.retry_after = retry_after
