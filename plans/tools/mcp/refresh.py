"""Periodic discovery of the configured servers, each by a separate task."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils.module_loading import import_string

from diagnostics.clock import DatabaseNow
from diagnostics.store.outbox import enqueue
from plans.models.tool import McpServer
from plans.tools.mcp.health import configured_servers, server_row

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
    """Discover the tools of a server, if it is still configured."""
    if server in configured_servers():
        # Imported here, so that a process that calls no server never loads the SDK.
        import_string("plans.tools.mcp.discovery.discover_server")(server)
