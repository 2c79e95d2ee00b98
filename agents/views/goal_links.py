"""The address of a goal's page, whatever characters its correlation id has."""

from agents import reading
from agents.models import Goal


def goal_url(goal: Goal) -> str:
    """The address that the API gives too."""
    return reading.goal_path(goal)


def find_goal(project_id: int, reference: str) -> Goal | None:
    """Look a goal up; PostgreSQL's text holds no NUL, so such a reference is nobody's."""
    return None if "\0" in reference else reading.find_goal(project_id, reference)
