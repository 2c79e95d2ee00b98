"""What there is to call, and where it comes from: for pages and the API alike."""

from collections.abc import Sequence
from dataclasses import dataclass

from plans.models import McpServer
from plans.tools.allowing import denied_tools
from plans.tools.definition import Tool
from plans.tools.mcp.catalogue import configured_servers
from plans.tools.registry import registered_tools


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool, and whether the project may call it."""

    tool: Tool
    allowed: bool


@dataclass(frozen=True, slots=True)
class ListedServer:
    """A configured MCP server, and what was last seen of it; None before it was asked."""

    name: str
    transport: str
    seen: McpServer | None
    tools: int

    @property
    def state(self) -> str:
        """Where it stands: `ok`, `failing`, or `not_asked` yet."""
        if self.seen is None or (self.seen.seen_at is None and not self.seen.last_error):
            return "not_asked"
        return "failing" if self.seen.last_error else "ok"


def list_tools(project_id: int) -> Sequence[ListedTool]:
    """Return all tools by name."""
    denied = denied_tools(project_id)
    found = sorted(registered_tools().values(), key=lambda tool: (tool.source, tool.name))
    return [ListedTool(tool, tool.name not in denied) for tool in found]


def list_servers(tools: Sequence[ListedTool]) -> Sequence[ListedServer]:
    """Return the configured MCP servers by name."""
    servers = configured_servers()
    if not servers:
        return []
    rows = {row.name: row for row in McpServer.objects.filter(name__in=servers)}
    sources = [listed.tool.source for listed in tools]
    return [
        ListedServer(name, chosen.transport, rows.get(name), sources.count(f"mcp:{name}"))
        for name, chosen in sorted(servers.items())
    ]
