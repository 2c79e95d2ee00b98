"""`manage.py decide`: completion decisions, JSON Lines in and out, no database (s3, X-13)."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import IO, Any

from django.core.management.base import BaseCommand

from diagnostics.core.cleaning import mend_surrogates
from diagnostics.redacting import redact
from plans.core.completion import resolve_completion_decision

# A mebibyte each of file and output as JSON escapes, and their neighbours.
MAX_LINE_BYTES = 16 * 1024 * 1024
_TEXTS = {"file": "a text, or null when there is none", "output": "a text"}


class LineError(ValueError):
    """A line of the input is not what the command reads."""

    def __init__(self, message: str, given_id: object = None) -> None:
        """Say why, and which id the line gave, if any."""
        super().__init__(message)
        self.given_id = given_id


class Command(BaseCommand):
    """Read `{"id", "file", "output", "check_id"}` lines, write a decision for each."""

    help = (
        "Decide from what completion checks left behind, one JSON object a line: "
        '{"id": ..., "file": "..." or null, "output": "...", "check_id": "..."}.'
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command line: standard input is all it takes."""

    def handle(self, *args: object, **options: Any) -> None:  # noqa: ANN401 - Django's
        """Run the command; it ends with 0 however bad the lines are."""
        for answer in decide_lines(sys.stdin.buffer):
            # In ASCII; half a character of the input becomes U+FFFD.
            line = mend_surrogates(json.dumps(answer).encode()).decode()
            self.stdout.write(line)
            self.stdout.flush()


def decide_lines(lines: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Answer every line that is not blank, in order."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield decide_line(line, number)


def decide_line(line: bytes, number: int) -> dict[str, Any]:
    """Answer one line; one that cannot be read is told with its number."""
    try:
        asked = _read_line(line)
    except LineError as fault:
        error = {"type": "bad_input", "line": number, "message": str(fault)}
        return {"id": fault.given_id, "error": error}
    verdict = resolve_completion_decision(
        asked.get("file"), asked.get("output") or "", asked.get("check_id")
    )
    return {
        "id": asked.get("id"),
        "decision": verdict.decision.value,
        "source": verdict.source.value,
        "check_id_match": verdict.check_id_match,
        "reason": redact(verdict.reason) if verdict.reason else None,
    }


def _read_line(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE_BYTES:
        raise LineError(f"a line has at most {MAX_LINE_BYTES} bytes")
    try:
        asked = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LineError("a line is one JSON object") from error
    if not isinstance(asked, dict):
        raise LineError("a line is one JSON object")
    given_id = asked.get("id")
    if "file" not in asked and "output" not in asked:
        raise LineError('a line has "file" or "output"', given_id)
    for key, expected in {**_TEXTS, "check_id": "a text"}.items():
        if not isinstance(asked.get(key), str | None):
            raise LineError(f'"{key}" is {expected}', given_id)
    return asked
