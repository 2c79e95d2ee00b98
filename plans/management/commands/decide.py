"""`manage.py decide`: completion decisions, JSON Lines in and out, no database."""

from collections.abc import Iterator, Mapping
from typing import IO, Any

from diagnostics.management import LinesCommand
from diagnostics.redaction.redactor import redact
from failsoft.completion import resolve_completion_decision
from failsoft.json_lines import Line, LineError, answer_lines

# The decision for an unreadable line; its `error` says why.
NOTHING: Line = {
    "decision": "undecidable",
    "source": "none",
    "check_id_match": None,
    "reason": "bad_input",
}
_TEXTS = {"file": "a text, or null when there is none", "output": "a text"}


class Command(LinesCommand):
    """Read `{"id", "file", "output", "check_id"}` lines, write a decision for each."""

    help = (
        "Resolve decisions of completion checks from standard input, one JSON object per line:  "
        '{"id": ..., "file": "..." or null, "output": "...", "check_id": "..."}.'
    )

    def answers(self, lines: IO[bytes], options: Mapping[str, Any]) -> Iterator[Line]:
        return answer_lines(lines, decide, NOTHING)


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
