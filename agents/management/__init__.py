"""What commands share: passwords from stdin, and waiting for a goal."""

import secrets
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from agents.goals.models import Goal


def add_password_option(parser: ArgumentParser) -> None:
    """Add the option; an argument would be visible in the process list and the shell history."""
    parser.add_argument("--password-stdin", action="store_true", help="read it from stdin")


def new_password(options: Mapping[str, Any], user: User | None = None) -> tuple[str, str]:
    """Return a valid password, and the line to print if it was generated."""
    is_piped = options["password_stdin"]
    password = sys.stdin.readline().rstrip("\n") if is_piped else secrets.token_urlsafe(18)
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error
    return password, "" if is_piped else f"Password: {password}"


POLL_SECONDS = 0.5
EXIT_CODES = {"completed": 0, "failed": 1, "cancelled": 1, "waiting_user": 3}


def show_goal(command: BaseCommand, record: Mapping[str, Any], lines: Iterable[str] = ()) -> None:
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
