"""Delete the recorded data of a correlation id or of a whole project."""

import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping

from django.core.management.base import BaseCommand, CommandError

from agents.purge.purging import StillAtWorkError, count, purge
from diagnostics.figures import plural
from diagnostics.management import require_project


class Command(BaseCommand):
    help = (
        "Delete goals, runs and events of a correlation id (--correlation-id), or"
        " all recorded data of a project (--everything). --everything asks"
        " for the project's slug at a terminal, and needs --yes without one."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, help="slug")
        scope = parser.add_mutually_exclusive_group(required=True)
        scope.add_argument("--correlation-id", help="of a goal or a run")
        scope.add_argument("--everything", action="store_true", help="all recorded data")
        parser.add_argument("--dry-run", action="store_true", help="count, delete nothing")
        parser.add_argument("--yes", action="store_true", help="skip the confirmation")

    def handle(
        self, *, project: str, correlation_id: str | None, dry_run: bool, yes: bool, **_: object
    ) -> None:
        owner = require_project(project)
        if dry_run:
            counts = count(owner, correlation_id)
            self.stdout.write(f"Would delete: {_describe(counts)}.")
            return
        if correlation_id is None and not yes:
            everything = _describe(count(owner, None))
            deletion = f"--everything deletes {everything} of the project {owner.slug}"
            if not sys.stdin.isatty():
                raise CommandError(f"{deletion}: confirm with --yes")
            self.stdout.write(f"{deletion}. Type its slug to continue: ", ending="")
            self.stdout.flush()
            if sys.stdin.readline().strip() != owner.slug:
                raise CommandError("nothing was deleted")
        purged: Counter[str] = Counter()
        try:
            purge(owner, correlation_id, lambda name, number: purged.update({name: number}))
        except StillAtWorkError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Deleted: {_describe(purged)}.")


def _describe(counts: Mapping[str, int]) -> str:
    return ", ".join(plural(counts[f"{name}s"], name) for name in ("event", "goal", "run"))
