"""`manage.py verify_contract`: validate a payload or results, without a database."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from diagnostics.management import print_json
from diagnostics.redaction.redactor import redact
from failsoft.command import check_payload, check_results, describe_fault
from failsoft.plans.contract import CONTRACT_VERSION
from plans.tools.registry import registered_tools


class Command(BaseCommand):
    """Print PASS and exit 0, or print every violation with its location and exit 1."""

    help = "Check a plan payload or execution results against the contract."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        document = parser.add_mutually_exclusive_group(required=True)
        document.add_argument("--payload", metavar="FILE", help="JSON payload; - for stdin")
        document.add_argument("--results", metavar="FILE", help="results; - for stdin")
        parser.add_argument(
            "--strict",
            action="store_true",
            help="payloads: tool objects, earlier dependencies, registered tools, no unknown keys",
        )
        parser.add_argument("--json", action="store_true", help="print JSON only")

    def handle(self, *args: object, **options: Any) -> None:
        if options["payload"] is None:
            faults = check_results(options["results"], redact)
        else:
            names, strict = sorted(registered_tools()), options["strict"]
            faults = check_payload(options["payload"], redact, strict=strict, tools=names)
        if options["json"]:
            verdict = {"contract_version": CONTRACT_VERSION, "valid": not faults}
            print_json(self, {**verdict, "errors": faults})
        else:
            for fault in faults:
                self.stdout.write(describe_fault(fault))
            self.stdout.write("FAIL" if faults else "PASS")
        sys.exit(1 if faults else 0)
