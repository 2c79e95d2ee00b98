"""Load the demo data into a project, or remove it."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand
from django.utils.dateparse import parse_datetime

from agents.demo.loading import SEED, load, remove
from diagnostics import clock
from diagnostics.management import require_project


class Command(BaseCommand):
    help = "Load two weeks of demo events and goals; --remove deletes them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--remove", action="store_true", help="remove the demo data")
        parser.add_argument("--project", default="default", help="slug, default: default")
        parser.add_argument("--now", type=_moment, help="end of the demo data, default: now")
        parser.add_argument("--seed", type=int, default=SEED, help="random seed")
        parser.add_argument("--volume", type=float, default=1.0, help="1 is about 25,000 events")

    def handle(self, *args: object, **options: Any) -> None:
        owner = require_project(options["project"])
        if options["remove"]:
            counts, nothing, done = remove(owner), "No demo data.", "removed"
        else:
            moment = options["now"] or clock.now()
            counts = load(owner, moment, options["seed"], options["volume"])
            nothing, done = "Demo data is already loaded.", "loaded"
        found = f"Demo data {done}: {counts.events} events, {counts.goals} goals."
        self.stdout.write(found if counts.events or counts.goals else nothing)


def _moment(text: str) -> datetime:
    moment = parse_datetime(text)
    if moment is None or moment.tzinfo is None:
        raise ValueError(f"not a time with an offset: {text}")
    return moment
