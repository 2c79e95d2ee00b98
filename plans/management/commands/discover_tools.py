"""`manage.py discover_tools`: discover and store the tools of MCP servers."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from plans.tools.mcp.discovery import Discovery, discover_server
from plans.tools.mcp.health import configured_servers


class Command(BaseCommand):
    """Exit status 1 when a server did not answer."""

    help = "Discover the tools of the configured MCP servers and store them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("servers", nargs="*", help="default: all")
        parser.add_argument("--json", action="store_true", help="print JSON only")

    def handle(self, *args: object, **options: Any) -> None:
        servers = configured_servers()
        names = options["servers"] or list(servers)
        if unknown := sorted(set(names) - set(servers)):
            raise CommandError(f"not configured: {', '.join(unknown)}")
        discoveries = [discover_server(name) for name in names]
        if options["json"]:
            self.stdout.write(json.dumps([asdict(discovery) for discovery in discoveries]))
        elif not discoveries:
            self.stdout.write("No MCP server is configured.")
        else:
            for discovery in discoveries:
                self._show(discovery)
        if any(discovery.error for discovery in discoveries):
            raise SystemExit(1)

    def _show(self, discovery: Discovery) -> None:
        if discovery.error:
            self.stdout.write(f"{discovery.server}: {discovery.error}")
            return
        self.stdout.write(f"{discovery.server}: {', '.join(discovery.tools) or 'no tools'}")
        for name, reason in discovery.left_out.items():
            self.stdout.write(f"  skipped {name}: {reason}")
