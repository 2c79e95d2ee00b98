"""Configured MCP servers: callable tools, last known health, errors."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import Error, transaction
from django.db.models import Q
from django.utils.module_loading import import_string

from diagnostics.clock import DatabaseNow
from diagnostics.outbound.credentials import CredentialError, read_credential
from diagnostics.redaction.redactor import redact
from diagnostics.store.outbox import enqueue
from failsoft.json_values import clean_text
from plans.models.tool import McpServer
from plans.tools.server_settings import ServerSettings, is_reference, read_servers

_FAULT_BYTES = 500
# The row of a server in constant use is written this often.
_SEEN_EVERY = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A discovered tool, as a call needs it; `digest` is that of the discovered schema."""

    server: str
    name: str
    remote_name: str
    digest: str
    settings: ServerSettings
    seconds: float
    repeatable: bool


def configured_servers() -> Mapping[str, ServerSettings]:
    return read_servers(settings.FAILSOFT_MCP_SERVERS)


def mask_credentials() -> None:
    """Mask the credentials of all servers, also where no server is called."""
    for server in configured_servers().values():
        for reference in filter(is_reference, [*server.env.values(), *server.headers.values()]):
            with suppress(CredentialError):
                read_credential(reference, "mcp_secret")


def server_row(name: str, server: ServerSettings) -> McpServer:
    row, _ = McpServer.objects.update_or_create(name=name, defaults={"transport": server.transport})
    return row


def note_seen(name: str) -> None:
    """Store that the server answered, unless the database is away: the call was made."""
    old = Q(seen_at=None) | Q(seen_at__lt=DatabaseNow() - _SEEN_EVERY)
    rows = McpServer.objects.filter(old | ~Q(last_error=""), name=name)
    with suppress(Error):
        rows.update(seen_at=DatabaseNow(), last_error="")


def note_fault(name: str, text: str) -> None:
    """Store an error of the server, unless the database is away."""
    rows, text = McpServer.objects.filter(name=name), redact(clean_text(text), _FAULT_BYTES)
    with suppress(Error), transaction.atomic():
        rows.update(last_error=text, error_at=DatabaseNow())


class ServerUnavailableError(Exception):
    """The server cannot be started, reached or understood; the message says why."""


class CallRefusedError(Exception):
    """The server refused the call, or was not reached: it was not made."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


DISCOVER_TASK = "plans.tasks.discover_tools"
_QUEUE = "steps"
_EVERY = timedelta(minutes=5)


def request_discovery() -> int:
    """Enqueue the discovery of each server that is due; return how many."""
    servers = configured_servers()
    McpServer.objects.exclude(name__in=servers).delete()
    requested = 0
    for name, server in servers.items():
        server_row(name, server)
        due = Q(asked_at=None) | Q(asked_at__lt=DatabaseNow() - _EVERY)
        with transaction.atomic():
            # Of several schedulers, one update matches the old time.
            row = McpServer.objects.filter(due, name=name)
            if row.update(asked_at=DatabaseNow()) == 1:
                enqueue(DISCOVER_TASK, {"server": name}, _QUEUE, None)
                requested += 1
    return requested


def discover_tools(server: str) -> None:
    if server in configured_servers():
        # Imported here, so that a process that calls no server never loads the SDK.
        import_string("plans.tools.mcp.discovery.discover_server")(server)
