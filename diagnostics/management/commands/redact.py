"""`manage.py redact`: mask what is secret in texts, JSON Lines in and out, no database."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from typing import IO, Any

from django.core.management.base import BaseCommand

from diagnostics.core.cleaning import mend_surrogates
from diagnostics.core.redaction import Redactor
from diagnostics.core.redaction.known import WeakSecretError, encodings
from diagnostics.core.redaction.rules import load_rule_set

MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_KNOWN = 1_000


class LineError(ValueError):
    """A line of the input is not what the command reads."""

    def __init__(self, message: str, given_id: object = None) -> None:
        """Say why, and which id the line gave, if any."""
        super().__init__(message)
        self.given_id = given_id


class Command(BaseCommand):
    """Read `{"id", "text"}` lines, write `{"id", "text", "found"}` lines."""

    help = (
        "Read texts from standard input, one JSON object a line: "
        '{"id": ..., "text": "...", "limit": bytes, "known": ["value", ...]}; '
        "limit and known may be left out."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command line."""
        parser.add_argument(
            "--emails", action="store_true", help="mask e-mail addresses too"
        )

    def handle(self, *args: object, **options: Any) -> None:  # noqa: ANN401 - Django's
        """Run the command; it ends with 0 however bad the lines are."""
        for answer in answer_lines(sys.stdin.buffer, emails=options["emails"]):
            # In ASCII; half a character of the input becomes U+FFFD.
            line = mend_surrogates(json.dumps(answer).encode()).decode()
            self.stdout.write(line)
            self.stdout.flush()


def answer_lines(lines: IO[bytes], *, emails: bool) -> Iterator[dict[str, Any]]:
    """Answer every line that is not blank, in order."""
    rules = load_rule_set(emails=emails)
    plain = Redactor(rules, {})
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            asked = _read_line(line)
            known, refused = _read_known(asked)
            redactor = Redactor(rules, known) if known else plain
            redacted = redactor.redact(asked["text"], asked.get("limit"))
        except LineError as fault:
            error = {"type": "bad_input", "line": number, "message": str(fault)}
            yield {"id": fault.given_id, "error": error}
        else:
            found = list(redacted.found)
            answer = {"id": asked.get("id"), "text": redacted.text, "found": found}
            yield answer | ({"refused": refused} if refused else {})


def _read_line(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE_BYTES:
        raise LineError(f"a line has at most {MAX_LINE_BYTES} bytes")
    try:
        asked = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LineError("a line is a JSON object in UTF-8") from error
    if not isinstance(asked, dict):
        raise LineError("a line is a JSON object")
    given = asked.get("id")
    if not isinstance(asked.get("text"), str):
        raise LineError("text is a string", given)
    limit = asked.get("limit")
    is_count = isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0
    if limit is not None and not is_count:
        raise LineError("limit is a number of bytes, 0 or more", given)
    return asked


def _read_known(asked: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Take the values to mask, and say which are refused, by their places."""
    values = asked.get("known") or []
    given = asked.get("id")
    if not isinstance(values, list) or len(values) > MAX_KNOWN:
        raise LineError(f"known is a list of at most {MAX_KNOWN} strings", given)
    known, refused = dict[str, str](), list[str]()
    for place, value in enumerate(values):
        if not isinstance(value, str):
            raise LineError(f"known[{place}] is not a string", given)
        try:
            encodings(value)
        except WeakSecretError as error:
            refused.append(f"known[{place}]: {error}")
        else:
            known[value] = "known"
    return known, refused
