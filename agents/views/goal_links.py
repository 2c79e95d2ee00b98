"""The address of a goal's page, whatever characters its correlation id has."""

import re

from django.urls import reverse

from agents import reading
from agents.models import Goal

PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@~-]*")
TAKEN = frozenset({"new"})


def goal_url(goal: Goal) -> str:
    """Use the correlation id where it can stand in a path, the row's id elsewhere."""
    reference = goal.correlation_id
    plain = PLAIN.fullmatch(reference) and reference not in TAKEN
    return reverse("goal", args=[reference if plain else str(goal.pk)])


def find_goal(project_id: int, reference: str) -> Goal | None:
    """Look a goal up; PostgreSQL's text holds no NUL, so such a reference is nobody's."""
    return None if "\0" in reference else reading.find_goal(project_id, reference)
