"""Wait for a goal, and print it."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from agents.goals.models import Goal

POLL_SECONDS = 0.5
EXIT_CODES = {"completed": 0, "failed": 1, "cancelled": 1, "waiting_user": 3}


def show_goal(command: BaseCommand, record: Mapping[str, Any], lines: Iterable[str] = ()) -> None:
    """Print a goal's status, the URL of its page and its message to the user."""
    page = f"{settings.FAILSOFT_BASE_URL}{record['url']}"
    command.stdout.write(f"{record['status']}  {record['correlation_id']}  {page}")
    for text in (*lines, record["user_text"]):
        if text:
            command.stdout.write(text)


def wait_for(goal: Goal) -> Goal:
    """Return the goal's row once it has ended or waits for its user."""
    while True:
        row = Goal.objects.select_related("language_model__provider").get(pk=goal.pk)
        if row.status in EXIT_CODES:
            return row
        time.sleep(POLL_SECONDS)
