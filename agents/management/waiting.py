"""Staying until a goal has ended, for commands."""

import time

from agents.goals.models import Goal

POLL_SECONDS = 0.5
EXIT_CODES = {"completed": 0, "failed": 1, "cancelled": 1, "waiting_user": 3}


def wait_for(goal: Goal) -> Goal:
    """Return the goal's row once it has ended or waits for its user."""
    while True:
        found = Goal.objects.select_related("language_model__provider").get(pk=goal.pk)
        if found.status in EXIT_CODES:
            return found
        time.sleep(POLL_SECONDS)
