"""Passwords that commands read from stdin, or generate and print once."""

import secrets
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError


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
