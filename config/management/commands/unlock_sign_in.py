"""`manage.py unlock_sign_in`: unlock a user after too many failed sign-ins."""

from argparse import ArgumentParser
from typing import Any

from allauth.core.internal.ratelimit import get_rates
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q

from config.accounts import BAD_SIGN_INS, attempts_cache_key, attempts_key
from diagnostics.accounts.audit_log import note


class Command(BaseCommand):
    help = "Unlock a user after too many failed sign-ins."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="user name or mail address")

    def handle(self, *args: object, **options: Any) -> None:
        name = options["name"]
        if not name:
            # Every user without a mail address would match.
            raise CommandError("Enter a username or an email address.")
        users = get_user_model().objects.filter(Q(username=name) | Q(email__iexact=name))
        user = users.first()
        if user is None:
            raise CommandError(f"user {name!r} not found")
        for rate in get_rates(**BAD_SIGN_INS):
            if rate.per == "key":
                cache.delete(attempts_cache_key(rate, attempts_key(user.pk)))
        note(None, "manage.py unlock_sign_in", "sign_in.unlocked", user.username)
        self.stdout.write(f"{user.username} can sign in again.")
