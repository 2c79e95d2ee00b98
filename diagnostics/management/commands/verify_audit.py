"""`manage.py verify_audit`: verify the audit log and name the first broken entry."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from diagnostics.accounts.audit_log import Break, Head, verify_chains


class Command(BaseCommand):
    """Exit 0 with the end of every chain, or exit 1 with the first broken entry."""

    help = "Verify the hash chains of the audit log."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--head",
            action="append",
            default=[],
            metavar="CHAIN:NUMBER:HASH",
            help="an end recorded earlier, which must still exist",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: object, **options: Any) -> None:
        results = verify_chains(_read_heads(options["head"]))
        broken = [result for result in results if isinstance(result, Break)]
        if options["json"]:
            document = {"is_whole": not broken, "chains": [asdict(result) for result in results]}
            self.stdout.write(json.dumps(document))
        else:
            for result in results:
                self.stdout.write(_describe(result))
            if not results:
                self.stdout.write("The audit log is empty.")
        if broken:
            raise CommandError(f"broken: {_describe(broken[0])}", returncode=1)


def _read_heads(texts: list[str]) -> list[Head]:
    try:
        parts = [text.split(":") for text in texts]
        return [Head(int(chain), int(number), end) for chain, number, end in parts]
    except ValueError as error:
        form = "expected CHAIN:NUMBER:HASH, a line that this command prints"
        raise CommandError(f"--head {' '.join(texts)}: {form}") from error


def _describe(result: Head | Break) -> str:
    if isinstance(result, Break):
        return f"chain {result.chain}, entry {result.number}: {result.reason}"
    return f"{result.chain}:{result.number}:{result.hash}"
