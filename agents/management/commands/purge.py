"""Delete what was recorded of a correlation id or of a whole project."""

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from agents.purging import StillAtWorkError, purge
from diagnostics.models import Project


class Command(BaseCommand):
    """Goals, runs, events with their details, failure groups and counts."""

    help = (
        "Delete goals, runs and events of a correlation id (--correlation-id), or"
        " everything that was recorded in a project (--everything)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--project", required=True, help="slug")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--correlation-id", help="of a goal, a run or an agent's own")
        what.add_argument(
            "--everything", action="store_true", help="settings and keys stay"
        )

    def handle(self, *, project: str, correlation_id: str | None, **_: object) -> None:
        """Delete, and say in one line how much."""
        owner = Project.objects.filter(slug=project).first()
        if owner is None:
            raise CommandError(f"there is no project {project!r}")
        try:
            purged = purge(owner, correlation_id)
        except StillAtWorkError as error:
            raise CommandError(str(error)) from error
        counted = f"{purged.events} events, {purged.goals} goals, {purged.runs} runs"
        self.stdout.write(f"Deleted: {counted}.")
