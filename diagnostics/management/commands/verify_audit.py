"""`manage.py verify_audit`: walk the audit log and name the first entry that is broken."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from diagnostics.accounts.audit_log import Break, Head, verify_chains


class Command(BaseCommand):
    """Exit 0 and the end of every chain, or exit 1 and the first broken entry."""

    help = "Verify the hash chains of the audit log."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare heads that were noted before, and JSON."""
        parser.add_argument(
            "--head",
            action="append",
            default=[],
            metavar="CHAIN:NUMBER:HASH",
            help="an end recorded earlier, which must still exist",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: object, **options: Any) -> None:  # noqa: ANN401 - Django's
        """Walk every chain."""
        found = verify_chains(_read_heads(options["head"]))
        broken = [one for one in found if isinstance(one, Break)]
        if options["json"]:
            told = {"is_whole": not broken, "chains": [asdict(one) for one in found]}
            self.stdout.write(json.dumps(told))
        else:
            for one in found:
                self.stdout.write(_told(one))
            if not found:
                self.stdout.write("The audit log is empty.")
        if broken:
            raise CommandError(f"broken: {_told(broken[0])}", returncode=1)


def _read_heads(texts: list[str]) -> list[Head]:
    try:
        parts = [text.split(":") for text in texts]
        return [Head(int(chain), int(number), end) for chain, number, end in parts]
    except ValueError as error:
        raise CommandError("--head must be CHAIN:NUMBER:HASH") from error


def _told(one: Head | Break) -> str:
    if isinstance(one, Break):
        return f"chain {one.chain}, entry {one.number}: {one.reason}"
    return f"{one.chain}:{one.number}:{one.hash}"
