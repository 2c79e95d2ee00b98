"""Load the demo data into a project, or remove it."""

import json
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.dateparse import parse_datetime

from agents.demo.drawn_runs import DrawnIncident, make_incident
from agents.demo.incident_scenarios import KINDS
from agents.demo.loading import SEED, load, load_incident, remove
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.management.projects import require_project

RUNS_PER_HOUR = 75.0
WEAKEST = 0.25
"""A demo incident should be visible; `bench.verdict` draws weaker ones."""


class Command(BaseCommand):
    """Two weeks of fake events and goals, or a week that ends with an incident."""

    help = (
        "Load two weeks of demo events and goals, or with --incident a week of events "
        "that ends with a known incident; --remove deletes either."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--remove", action="store_true", help="remove the demo data")
        parser.add_argument("--incident", choices=[*KINDS], help="load a week that ends with this")
        parser.add_argument("--json", action="store_true", help="print the true cause")
        parser.add_argument("--project", default="default", help="slug, default: default")
        parser.add_argument("--now", type=_moment, help="end of the demo data, default: now")
        parser.add_argument("--seed", type=int, default=SEED, help="random seed")
        parser.add_argument(
            "--volume",
            type=float,
            default=1.0,
            help="1 is about 25,000 events, 15,000 with --incident",
        )

    def handle(self, *args: object, **options: Any) -> None:  # noqa: ANN401 - Django's
        """Load or remove, and print one line about it."""
        owner, incident = require_project(options["project"]), options["incident"]
        if options["json"] and (incident is None or options["remove"]):
            raise CommandError("--json requires --incident")
        moment, seed, volume = options["now"] or clock.now(), options["seed"], options["volume"]
        if options["remove"]:
            message = _remove(owner)
        elif incident is None:
            message = _load(owner, moment, seed, volume)
        else:
            drawn = make_incident(incident, seed, moment, RUNS_PER_HOUR * volume, weakest=WEAKEST)
            message = _load_incident(owner, drawn, as_json=options["json"])
        self.stdout.write(message)


def _moment(text: str) -> datetime:
    moment = parse_datetime(text)
    if moment is None or moment.tzinfo is None:
        raise ValueError(f"not a time with an offset: {text}")
    return moment


def _load(project: Project, now: datetime, seed: int, volume: float) -> str:
    counts = load(project, now, seed, volume)
    if not counts.goals:
        return "Demo data is already loaded."
    return f"Demo data loaded: {counts.events} events, {counts.goals} goals."


def _load_incident(project: Project, incident: DrawnIncident, *, as_json: bool) -> str:
    events = load_incident(project, incident)
    if not events:
        raise CommandError("demo data is already loaded; remove it with --remove")
    if as_json:
        return json.dumps(incident.truth)
    since = f" since {incident.since:%Y-%m-%d %H:%M} UTC" if incident.since else ""
    return f"Incident loaded: {events} events, {incident.kind}{since}."


def _remove(project: Project) -> str:
    counts = remove(project)
    if not counts.events and not counts.goals:
        return "No demo data."
    return f"Demo data removed: {counts.events} events, {counts.goals} goals."
