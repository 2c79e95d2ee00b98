"""Incidents through the whole pipeline: the door, the fold, rollups, `verdict_of`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import count

from django.db import connection

from agents.core.demo.troubles.drawing import Incident
from agents.demonstrating import load_incident
from bench.database import running_database
from diagnostics import clock
from diagnostics.core.selection import Selection
from diagnostics.core.verdict.cause import Finding
from diagnostics.models import Project
from diagnostics.verdicts import verdict_of


@contextmanager
def asking() -> Iterator[Callable[[Incident], tuple[Finding, datetime | None]]]:
    """Give a function that loads an incident and asks, each in a project of its own."""
    numbers = count(1)

    def ask(incident: Incident) -> tuple[Finding, datetime | None]:
        slug = f"incident-{next(numbers)}"
        project = Project.objects.create(slug=slug, name=slug)
        _set_clock(incident.now)
        load_incident(project, incident)
        verdict = verdict_of(project.pk, Selection(), clock.now())
        return verdict.finding, verdict.since

    with running_database():
        yield ask


def _set_clock(at: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('failsoft.clock_shift', (%s - now())::text, false)", [at]
        )
