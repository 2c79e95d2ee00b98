"""Load the demo data into a project, or remove it."""

from argparse import ArgumentParser
from datetime import datetime

from django.core.management.base import BaseCommand, CommandError
from django.utils.dateparse import parse_datetime

from agents.demonstrating import SEED, load, remove
from diagnostics import clock
from diagnostics.models import Project


class Command(BaseCommand):
    """Two weeks of made-up events and goals: loading again adds nothing."""

    help = "Load two weeks of made-up events and goals, or remove them with --remove."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--remove", action="store_true", help="remove what was loaded"
        )
        parser.add_argument(
            "--project", default="default", help="slug, default: default"
        )
        parser.add_argument(
            "--now", type=_moment, help="the moment the story leads up to, default: now"
        )
        parser.add_argument("--seed", type=int, default=SEED, help="another story")
        parser.add_argument(
            "--volume", type=float, default=1.0, help="1 is about 25,000 events"
        )

    def handle(
        self,
        *,
        remove: bool,
        project: str,
        now: datetime | None,
        seed: int,
        volume: float,
        **_: object,
    ) -> None:
        """Load or remove, and say in one line what was done."""
        owner = Project.objects.filter(slug=project).first()
        if owner is None:
            raise CommandError(
                f"there is no project {project!r}; see manage.py first_run"
            )
        self.stdout.write(_remove(owner) if remove else _load(owner, now, seed, volume))


def _moment(text: str) -> datetime:
    moment = parse_datetime(text)
    if moment is None or moment.tzinfo is None:
        raise ValueError(f"not a time with an offset: {text}")
    return moment


def _load(project: Project, now: datetime | None, seed: int, volume: float) -> str:
    counted = load(project, now or clock.now(), seed, volume)
    if not counted.goals:
        return "Demo data is already there; nothing was added."
    return f"Demo data loaded: {counted.events} events, {counted.goals} goals."


def _remove(project: Project) -> str:
    counted = remove(project)
    if not counted.events and not counted.goals:
        return "There is no demo data to remove."
    return f"Demo data removed: {counted.events} events, {counted.goals} goals."
