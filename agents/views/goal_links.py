"""The address of a goal's page, whatever characters its correlation id has."""

import re
from uuid import UUID

from django.urls import reverse

from agents.models import Goal
from diagnostics.models import Project

PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@~-]*")
TAKEN = frozenset({"new"})


def goal_url(goal: Goal) -> str:
    """Use the correlation id where it can stand in a path, the row's id elsewhere."""
    reference = goal.correlation_id
    plain = PLAIN.fullmatch(reference) and reference not in TAKEN
    return reverse("goal", args=[reference if plain else str(goal.pk)])


def find_goal(project: Project, reference: str) -> Goal | None:
    """Look a goal up by correlation id, then by row id, in one project only."""
    if "\0" in reference:
        return None
    mine = Goal.objects.filter(project=project)
    found = mine.filter(correlation_id=reference).first()
    if found is None and (row_id := _as_uuid(reference)):
        return mine.filter(pk=row_id).first()
    return found


def _as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
