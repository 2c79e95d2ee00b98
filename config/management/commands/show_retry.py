"""`manage.py show_retry`: the retry policy in force, and where each value comes from."""

import json
import os
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.configuration import FileError, read_config_file
from config.retry import trace_retry


class Command(BaseCommand):
    """Print the four options as `name = value (source)`; needs no database."""

    help = "Print the default retry policy and where each value comes from."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON only")

    def handle(self, *args: object, **options: Any) -> None:
        try:
            file = read_config_file(os.environ.get("FAILSOFT_CONFIG"))
            settings = trace_retry(file.get("plan_retry", {}), os.environ)
        except (FileError, ValueError) as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            rows = {setting.option: asdict(setting) for setting in settings}
            self.stdout.write(json.dumps(rows, indent=2))
            return
        for setting in settings:
            value = json.dumps(setting.value)
            self.stdout.write(f"{setting.option} = {value}  ({setting.source})")
