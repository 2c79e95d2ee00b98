"""Write an incident's week into a project, as its senders would."""

from datetime import timedelta
from random import Random

from agents.demo.loading import write_runs
from diagnostics.accounts.models import Project
from diagnostics.alerting.backfill import backfill
from tests.incidents.drawn_runs import DrawnIncident, attempts_of

WATCHED = timedelta(hours=12)
"""How far back alert rules are evaluated."""


def load_incident(project: Project, incident: DrawnIncident) -> None:
    """Write the week, and evaluate the alert rules at its end."""
    write_incident(project, incident)
    backfill(project.pk, incident.now - WATCHED, incident.now)


def write_incident(project: Project, incident: DrawnIncident) -> int:
    """Write events and deploys, without evaluations and incidents; return the new events."""
    runs = attempts_of(incident, Random(incident.seed))
    return write_runs(project, incident.now, incident.deploys(), runs)
