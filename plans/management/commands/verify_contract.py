"""`manage.py verify_contract`: check a payload or results, no database."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from diagnostics.management.printing import print_json
from diagnostics.redaction.redactor import redact
from failsoft.parsing.strict import locate_violations
from failsoft.plans.contract import CONTRACT_VERSION, MAX_PAYLOAD_BYTES
from failsoft.plans.results import validate_results
from failsoft.plans.validation import validate_payload
from plans.management.files import DocumentError, JsonFile, describe, read_document
from plans.tools.registry import registered_tools

# Results carry outputs, which a payload does not.
_MAX_RESULTS_BYTES = 1024 * MAX_PAYLOAD_BYTES


class Command(BaseCommand):
    """Print PASS and exit 0, or print every violation with its place and exit 1."""

    help = "Check a plan payload or execution results against the contract."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command line."""
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--payload", metavar="FILE", help="JSON payload; - for stdin")
        what.add_argument("--results", metavar="FILE", help="results; - for stdin")
        parser.add_argument(
            "--strict",
            action="store_true",
            help="payloads: tool objects, earlier dependencies, registered tools",
        )
        parser.add_argument("--json", action="store_true", help="print JSON only")

    def handle(self, *args: object, **options: Any) -> None:  # noqa: ANN401 - Django's
        """Run the command."""
        faults = [{**fault, "message": redact(fault["message"])} for fault in _check(options)]
        if options["json"]:
            document = {
                "contract_version": CONTRACT_VERSION,
                "valid": not faults,
                "errors": faults,
            }
            print_json(self, document)
        else:
            for fault in faults:
                self.stdout.write(describe(fault))
            self.stdout.write("FAIL" if faults else "PASS")
        sys.exit(1 if faults else 0)


def _check(options: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        if options["payload"] is not None:
            return _check_payload(options["payload"], strict=options["strict"])
        return _check_results(options["results"])
    except DocumentError as error:
        return [error.fault]


def _check_payload(name: str, *, strict: bool) -> list[dict[str, Any]]:
    document: JsonFile = read_document(name, MAX_PAYLOAD_BYTES)
    found = validate_payload(document.value, strict=strict, known_tools=registered_tools())
    return locate_violations(document.text, found)


def _check_results(name: str) -> list[dict[str, Any]]:
    document = read_document(name, _MAX_RESULTS_BYTES)
    return locate_violations(document.text, validate_results(document.value))
