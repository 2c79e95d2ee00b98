"""Mail by SMTP with one time limit per conversation; Django's is per read."""

import re
import smtplib
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends import smtp
from django.core.mail.message import sanitize_address

from diagnostics.outbound.mail_headers import clean_header
from diagnostics.outbound.pinned_http import Cutoff

SECONDS = 20.0
FULL_NAME = re.compile(r"([a-z0-9-]+\.)+[a-z][a-z0-9-]*")


class SomeRecipientsRefused(smtplib.SMTPRecipientsRefused):
    """The mail was taken, though not for all: `recipients` has the answers for the others."""


def answers_of(error: Exception, addresses: Sequence[str]) -> dict[str, str]:
    """Return the server's answer for each address that it refused, `550 no such user`.

    What it refuses after the text of the mail, it refuses for all of them. Whatever is wrong with
    the sender or the connection is no answer for an address.
    """
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        # The server was asked for them as they go over the wire.
        by_name = {sanitize_address(address, "utf-8"): address for address in addresses}
        refused: dict[str, tuple[int, bytes | str]] = {
            by_name.get(name, name): reply for name, reply in error.recipients.items()
        }
    elif isinstance(error, smtplib.SMTPDataError):
        refused = dict.fromkeys(addresses, (error.smtp_code, error.smtp_error))
    else:
        return {}
    return {address: reply_words(*reply) for address, reply in refused.items()}


def reply_words(code: int, text: bytes | str) -> str:
    words = text.decode(errors="replace") if isinstance(text, bytes) else text
    return clean_header(f"{code} {words}")


class _Watched(smtplib.SMTP):
    """Registers its connection with the cutoff before the first read."""

    def __init__(self, *args: Any, watch: Callable[[socket.socket], None], **kwargs: Any) -> None:
        self._watch = watch
        host = urlsplit(settings.FAILSOFT_BASE_URL).hostname or ""
        # That of a container is not fully qualified: strict servers take no mail from it.
        name = {"local_hostname": host} if FULL_NAME.fullmatch(host) else {}
        super().__init__(*args, **{**kwargs, **name})

    def sendmail(self, *args: Any, **kwargs: Any) -> dict[str, tuple[int, bytes]]:
        """Send one mail; raise even if only some were refused, which Django does not look at."""
        if refused := super().sendmail(*args, **kwargs):
            raise SomeRecipientsRefused(refused)
        return refused

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        connection: socket.socket = super()._get_socket(host, port, timeout)  # type: ignore[misc]  # not in its stub
        self._watch(connection)
        return connection


class _WatchedTls(_Watched, smtplib.SMTP_SSL):
    """The same with implicit TLS."""


class EmailBackend(smtp.EmailBackend):
    """Django's backend; raises TimeoutError after EMAIL_TIMEOUT in total."""

    _cutoff: Cutoff | None = None

    @property
    def connection_class(self) -> Any:  # noqa: ANN401 - as Django calls it
        return partial(_WatchedTls if self.use_ssl else _Watched, watch=self._watch)

    def open(self) -> bool | None:
        with self._limited():
            return super().open()

    def close(self) -> None:
        with self._limited():
            super().close()

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        with self._limited():
            return super().send_messages(email_messages)

    @contextmanager
    def _limited(self) -> Iterator[None]:
        if self._cutoff is not None:
            yield
            return
        seconds = self.timeout or SECONDS
        self._cutoff = Cutoff(time.monotonic() + seconds)
        try:
            with self._cutoff:
                if self.connection is not None:
                    self._watch(self.connection.sock)
                yield
        except (OSError, smtplib.SMTPException):
            if not self._cutoff.is_over:
                raise
            raise TimeoutError(f"no answer within {seconds:g} s") from None
        finally:
            self._cutoff = None

    def _watch(self, connection: socket.socket | None) -> None:
        if self._cutoff is not None and connection is not None:
            self._cutoff.watch(connection)
