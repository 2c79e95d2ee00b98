"""JSON output of commands."""

import json
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand


def print_json(command: BaseCommand, document: Mapping[str, Any]) -> None:
    """Write a document to the command's output."""
    command.stdout.write(json.dumps(document, ensure_ascii=False, indent=2))
