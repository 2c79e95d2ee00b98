"""Configured servers: their tools to call, their last known state, what can go wrong."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db.models import Q

from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import redact
from plans.models.tool import McpServer
from plans.tools.server_settings import ServerSettings, read_servers

_FAULT_BYTES = 500
# A server in constant use writes its row this often.
_SEEN_EVERY = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """What a call needs to know of a tool; `digest` is that of the known schema."""

    server: str
    name: str
    remote_name: str
    digest: str
    settings: ServerSettings
    seconds: float
    repeatable: bool


def configured_servers() -> Mapping[str, ServerSettings]:
    """Return the servers of this installation by name."""
    return read_servers(settings.FAILSOFT_MCP_SERVERS)


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
