"""Rebuild the rows of runs from stored events."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.management import require_project
from diagnostics.store.runs import rebuild_before


class Command(BaseCommand):
    help = (
        "Rebuild the list of runs from events, newest first, while the "
        "services run: once after an upgrade from a release without it. It may be interrupted "
        "and repeated; --project and --before continue where it stopped."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", metavar="SLUG", help="only this project")
        parser.add_argument("--before", metavar="TIME", help="only events before, with offset")

    def handle(self, *args: object, **options: Any) -> None:
        before = _read_time(options["before"]) if options["before"] else clock.now()
        slug = options["project"]
        projects = [require_project(slug)] if slug else Project.objects.order_by("slug")
        for project in projects:
            total = 0
            for reached, rebuilt in rebuild_before(project.pk, before):
                total += rebuilt
                self.stdout.write(f"{project.slug}  {reached.isoformat()}  {total} runs")


def _read_time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise CommandError(f"--before: {text!r} is not a time") from error
    if at.tzinfo is None:
        raise CommandError("--before: expected a time with an offset")
    return at
