"""`manage.py publish_contract FOLDER`: write the contract's JSON Schemas as files."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from failsoft.plans.contract import NAMES, contract_schema


class Command(BaseCommand):
    """Write one file per schema, as GET /api/v1/contract/ serves them."""

    help = "Write the JSON Schemas of the plan execution contract into a folder."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", metavar="FOLDER", type=Path)

    def handle(self, *args: object, **options: Any) -> None:
        folder: Path = options["folder"]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name in NAMES:
                target = folder / f"{name}.schema.json"
                text = json.dumps(contract_schema(name), indent=2, ensure_ascii=False)
                target.write_text(f"{text}\n", encoding="utf-8")
                self.stdout.write(str(target))
        except OSError as error:
            raise CommandError(f"cannot write to {folder}: {error.strerror}") from error
