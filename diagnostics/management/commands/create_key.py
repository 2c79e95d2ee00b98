"""`manage.py create_key`: make an API key and print it once."""

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from diagnostics import clock
from diagnostics.access.auditing import note
from diagnostics.access.projects import DEFAULT_SLUG, issue_key
from diagnostics.core.api_keys import Scope
from diagnostics.core.cleaning import JSON
from diagnostics.models import Project


class Command(BaseCommand):
    """Make an API key; only its hash is kept, so it is printed once."""

    help = "Make an API key of a project and print it; it cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare project, name, scopes and days of life."""
        scopes = [scope.value for scope in Scope]
        parser.add_argument("--project", default=DEFAULT_SLUG, help="slug")
        parser.add_argument("--name", required=True, help="what the key is for")
        parser.add_argument(
            "--scope", action="append", choices=scopes, required=True, dest="scopes"
        )
        parser.add_argument("--days", type=int, help="days until it expires")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: object, **options: Any) -> None:  # noqa: ANN401 - Django's
        """Make the key and print it to stdout."""
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            known = ", ".join(Project.objects.values_list("slug", flat=True)) or "none"
            raise CommandError(f"no project {options['project']!r}; known: {known}")
        days = options["days"]
        expires = clock.now() + timedelta(days=days) if days is not None else None
        scopes = [Scope(scope) for scope in options["scopes"]]
        with transaction.atomic():
            issued = issue_key(project, options["name"], scopes, expires)
            told: dict[str, JSON] = {
                "key_id": issued.row.key_id,
                "scopes": [scope.value for scope in scopes],
            }
            by = "manage.py create_key"
            note(project.pk, by, "key.created", options["name"], told)
        self.stdout.write(_shown(issued.text, options["json"], project.slug))


def _shown(text: str, as_json: bool, slug: str) -> str:
    return json.dumps({"project": slug, "key": text}) if as_json else text
