"""What commands share: the project of their `--project` option, and JSON output."""

import json
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from diagnostics.accounts.models import Project


def require_project(slug: str) -> Project:
    """Return the project of this slug; CommandError names those that exist."""
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        slugs = Project.objects.order_by("slug").values_list("slug", flat=True)
        known = ", ".join(slugs) or "none; see `manage.py first_run`"
        raise CommandError(f"project {slug!r} not found; known: {known}")
    return project


def print_json(command: BaseCommand, document: Mapping[str, Any]) -> None:
    command.stdout.write(json.dumps(document, ensure_ascii=False, indent=2))
