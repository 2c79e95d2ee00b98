"""What commands share: the project of their `--project` option, JSON output, and JSON Lines."""

import json
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError

from diagnostics.accounts.models import Project
from failsoft.json_lines import Line, write_line


def require_project(slug: str) -> Project:
    """Return the project of this slug; CommandError names those that exist."""
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        slugs = Project.objects.order_by("slug").values_list("slug", flat=True)
        known = ", ".join(slugs) or "none; see `manage.py first_run`"
        raise CommandError(f"project {slug!r} not found; known: {known}")
    return project


def print_json(command: BaseCommand, document: Mapping[str, Any]) -> None:
    command.stdout.write(json.dumps(document, ensure_ascii=False, indent=2))


class LinesCommand(BaseCommand):
    """JSON Lines in and out, without a database; it exits with 0 even if lines are invalid."""

    requires_system_checks = []

    def handle(self, *args: object, **options: Any) -> None:
        for answer in self.answers(sys.stdin.buffer, options):
            self.stdout.write(write_line(answer))
            self.stdout.flush()

    @abstractmethod
    def answers(self, lines: IO[bytes], options: Mapping[str, Any]) -> Iterator[Line]:
        """Yield the answer of every line that is not blank, in order."""
