"""`manage.py create_key`: create an API key and print it once."""

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import ApiKey
from diagnostics.accounts.projects import DEFAULT_SLUG, create_key
from diagnostics.management import require_project

MOST_DAYS = 36_500


class Command(BaseCommand):
    help = "Create an API key for a project and print it; it cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        scopes = [scope.value for scope in Scope]
        parser.add_argument("--project", default=DEFAULT_SLUG, help="slug")
        parser.add_argument("--name", required=True, help="what the key is for")
        parser.add_argument(
            "--scope", action="append", choices=scopes, required=True, dest="scopes"
        )
        parser.add_argument("--days", type=int, help="days until it expires")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: object, **options: Any) -> None:
        project = require_project(options["project"])
        name = " ".join(options["name"].split())
        longest = ApiKey._meta.get_field("name").max_length or 0
        if not 0 < len(name) <= longest:
            raise CommandError(f"--name must have 1 to {longest} characters")
        scopes = [Scope(scope) for scope in options["scopes"]]
        days, expires_at = options["days"], None
        if days is not None:
            if not 0 < days <= MOST_DAYS:
                raise CommandError(f"--days must be 1 to {MOST_DAYS}")
            expires_at = clock.now() + timedelta(days=days)
        issued = create_key(project, "manage.py create_key", name, scopes, expires_at)
        as_json = json.dumps({"project": project.slug, "key": issued.text})
        self.stdout.write(as_json if options["json"] else issued.text)
