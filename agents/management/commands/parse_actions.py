"""`manage.py parse_actions`: decode tool calls, JSON Lines in and out, no database."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from failsoft.actions.entries import TOOLSETS
from failsoft.actions.streaming import answer_calls
from failsoft.json_lines import numbered_lines, write_line


class Command(BaseCommand):
    """Read `{"id", "tool_calls"}` lines, write `{"id", "actions", "failures", "coerced"}` lines."""

    help = (
        "Decode tool calls from standard input, one JSON object per line: "
        '{"id": ..., "tool_calls": [...]}.'
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--toolset", required=True, choices=sorted(TOOLSETS), help="toolset of the calls"
        )

    def handle(self, *args: object, **options: Any) -> None:  # noqa: ANN401 - Django's
        """Run the command; it exits with 0 even if lines are invalid."""
        toolset = TOOLSETS[options["toolset"]]
        for number, line in numbered_lines(sys.stdin.buffer):
            self.stdout.write(write_line(answer_calls(line, number, toolset)))
            self.stdout.flush()
