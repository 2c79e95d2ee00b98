"""`manage.py decide`: completion decisions, JSON Lines in and out, no database."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from diagnostics.redaction.redactor import redact
from failsoft.completion import resolve_completion_decision
from failsoft.json_lines import Line, LineError, answer_lines, write_line

# The decision for an unreadable line; its `error` says why.
NOTHING: Line = {
    "decision": "undecidable",
    "source": "none",
    "check_id_match": None,
    "reason": "bad_input",
}
_TEXTS = {"file": "a text, or null when there is none", "output": "a text"}


class Command(BaseCommand):
    """Read `{"id", "file", "output", "check_id"}` lines, write a decision for each."""

    help = (
        "Resolve decisions of completion checks from standard input, one JSON object per line:  "
        '{"id": ..., "file": "..." or null, "output": "...", "check_id": "..."}.'
    )
    requires_system_checks = []

    def handle(self, *args: object, **options: Any) -> None:  # noqa: ANN401 - Django's
        """Run the command; it ends with 0 however bad the lines are."""
        for answer in answer_lines(sys.stdin.buffer, decide, NOTHING):
            self.stdout.write(write_line(answer))
            self.stdout.flush()


def decide(line: Line) -> Line:
    """Return the decision for one line; LineError when it is invalid."""
    if "file" not in line and "output" not in line:
        raise LineError('a line needs "file" or "output"', code="missing")
    for key, expected in {**_TEXTS, "check_id": "a text"}.items():
        if not isinstance(line.get(key), str | None):
            raise LineError(f'"{key}" is {expected}')
    verdict = resolve_completion_decision(
        line.get("file"), line.get("output") or "", line.get("check_id")
    )
    return {
        "decision": verdict.decision.value,
        "source": verdict.source.value,
        "check_id_match": verdict.check_id_match,
        "reason": redact(verdict.reason) if verdict.reason else None,
    }
