"""The last known state of each configured server, and what can go wrong with one."""

from datetime import timedelta

from django.db.models import Q

from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import redact
from plans.models.tool import McpServer
from plans.tools.server_settings import ServerSettings

_FAULT_BYTES = 500
# A server in constant use writes its row this often.
_SEEN_EVERY = timedelta(seconds=30)


def server_row(name: str, chosen: ServerSettings) -> McpServer:
    """Return the row of a server, made when it is first heard of."""
    row, _ = McpServer.objects.update_or_create(name=name, defaults={"transport": chosen.transport})
    return row


def note_seen(name: str) -> None:
    """Write down that the server answered."""
    old = Q(seen_at=None) | Q(seen_at__lt=DatabaseNow() - _SEEN_EVERY)
    rows = McpServer.objects.filter(old | ~Q(last_error=""), name=name)
    rows.update(seen_at=DatabaseNow(), last_error="")


def note_fault(name: str, text: str) -> None:
    """Write down that the server did not do its part, and why."""
    McpServer.objects.filter(name=name).update(
        last_error=redact(text, _FAULT_BYTES), error_at=DatabaseNow()
    )


class ServerUnavailableError(Exception):
    """The server cannot be started, reached or understood; the message says why."""


class SessionEndedError(Exception):
    """The server does not know the session any more; the call was not made."""
