"""`manage.py reset_password`: set a new password where no mail can be sent."""

from argparse import ArgumentParser
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from agents.management import add_password_option, new_password
from diagnostics.accounts.audit_log import note


class Command(BaseCommand):
    """Set a new password, end every session of the user, print a generated password."""

    help = "Set a new password for a user; it is generated and printed once, or read from stdin."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        add_password_option(parser)
        parser.add_argument(
            "--forget-second-factor",
            action="store_true",
            help="for users who lost their phone, keys and recovery codes",
        )

    def handle(self, *args: object, **options: Any) -> None:
        name = options["username"]
        user = get_user_model().objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"user {name!r} not found")
        password, message = new_password(options, user)
        forgets = options["forget_second_factor"]
        with transaction.atomic():
            user.set_password(password)
            user.save(update_fields=["password"])
            for session in UserSession.objects.filter(user_id=user.pk):
                session.end()
            if forgets:
                Authenticator.objects.filter(user=user).delete()
            forgotten = {"second_factor_forgotten": bool(forgets)}
            note(None, "manage.py reset_password", "password.reset", name, forgotten)
        self.stdout.write(f"{name} has a new password; all sessions were ended.")
        if message:
            self.stdout.write(message)
