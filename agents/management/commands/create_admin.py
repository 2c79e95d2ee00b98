"""`manage.py create_admin`: create a superuser who administers the default project."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from agents.management import add_password_option, new_password
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Membership
from diagnostics.accounts.profiles import give_address
from diagnostics.accounts.projects import ensure_default_project


class Command(BaseCommand):
    """Create an administrator; the password is read from stdin, or generated and printed once."""

    help = "Create an administrator of the console and the default project."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--email", default="")
        add_password_option(parser)

    def handle(self, *args: object, **options: Any) -> None:
        users = get_user_model()
        if users.objects.filter(username=options["username"]).exists():
            raise CommandError(f"User {options['username']} already exists.")
        try:
            users(username=options["username"], email=options["email"]).clean_fields(
                exclude=["password"]
            )
        except ValidationError as error:
            faults = error.message_dict.items()
            message = "; ".join(f"{name}: {' '.join(texts)}" for name, texts in faults)
            raise CommandError(message) from error
        password, message = new_password(options)
        with transaction.atomic():
            user = users.objects.create_superuser(options["username"], options["email"], password)
            give_address(user)
            project = ensure_default_project()
            Membership.objects.create(project=project, user=user, role=Membership.Role.ADMIN)
            by = "manage.py create_admin"
            note(project.pk, by, "member.joined", options["username"])
        self.stdout.write(f"Created {options['username']}.")
        if message:
            self.stdout.write(message)
