"""Ask the configured MCP servers what they offer, and keep it."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from plans.tools.mcp.discovery import Discovered, discover_server
from plans.tools.mcp.health import configured_servers


class Command(BaseCommand):
    """Exit status 1 when a server did not answer."""

    help = "Discover the tools of the configured MCP servers and store them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the names of servers; none means all."""
        parser.add_argument("servers", nargs="*", help="default: all")
        parser.add_argument("--json", action="store_true", help="print JSON only")

    def handle(self, *args: object, **options: Any) -> None:  # noqa: ANN401 - options
        """Ask one after the other."""
        known = configured_servers()
        names = options["servers"] or list(known)
        if unknown := sorted(set(names) - set(known)):
            raise CommandError(f"not configured: {', '.join(unknown)}")
        found = [discover_server(name) for name in names]
        if options["json"]:
            self.stdout.write(json.dumps([asdict(item) for item in found]))
        elif not found:
            self.stdout.write("No MCP server is configured.")
        else:
            for item in found:
                self._show(item)
        if any(item.error for item in found):
            raise SystemExit(1)

    def _show(self, item: Discovered) -> None:
        if item.error:
            self.stdout.write(f"{item.server}: {item.error}")
            return
        self.stdout.write(f"{item.server}: {', '.join(item.tools) or 'no tools'}")
        for name, why in item.left_out.items():
            self.stdout.write(f"  skipped {name}: {why}")
