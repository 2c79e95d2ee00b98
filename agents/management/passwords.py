"""Passwords that commands set: read from stdin, or made and printed once."""

import secrets
import sys
from argparse import ArgumentParser

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError


def add_password_argument(parser: ArgumentParser) -> None:
    """Declare the switch; an argument would stand in the process list and the shell's history."""
    parser.add_argument("--password-stdin", action="store_true", help="read it from stdin")


def read_password(*, is_given: bool, user: User | None = None) -> str:
    """Return a password that is good enough, given on stdin or made here."""
    password = sys.stdin.readline().rstrip("\n") if is_given else secrets.token_urlsafe(18)
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error
    return password
