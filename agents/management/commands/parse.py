"""`manage.py parse`: recover, soften and check answers, JSON Lines in and out, no database."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import IO, Any

from django.core.management.base import BaseCommand

from agents.core.parsing import AnswerSchema, parse_answer
from diagnostics.core.cleaning import mend_surrogates

# A mebibyte of text as JSON escapes, and its neighbours.
MAX_LINE_BYTES = 8 * 1024 * 1024


class LineError(ValueError):
    """A line of the input is not what the command reads."""

    def __init__(self, message: str, given_id: object = None) -> None:
        """Say why, and which id the line gave, if any."""
        super().__init__(message)
        self.given_id = given_id


class Command(BaseCommand):
    """Read `{"id", "raw"}` lines, write `{"id", "ok", "value", "repairs", ...}` lines."""

    help = (
        "Read answers of models from standard input, one JSON object a line: "
        '{"id": ..., "raw": "...", "schema": "...", "finish_reason": "..."}.'
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command line."""
        parser.add_argument(
            "--schema",
            choices=[schema.value for schema in AnswerSchema],
            default=AnswerSchema.NONE.value,
            help="what answers are checked against, unless their line says otherwise",
        )

    def handle(self, *args: object, **options: Any) -> None:  # noqa: ANN401 - Django's
        """Run the command; it ends with 0 however bad the lines are."""
        schema = AnswerSchema(options["schema"])
        for answer in answer_lines(sys.stdin.buffer, schema):
            # In ASCII; half a character of the input becomes U+FFFD.
            line = mend_surrogates(json.dumps(answer).encode()).decode()
            self.stdout.write(line)
            self.stdout.flush()


def answer_lines(lines: IO[bytes], schema: AnswerSchema) -> Iterator[dict[str, Any]]:
    """Answer every line that is not blank, in order."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield answer_line(line, number, schema)


def answer_line(line: bytes, number: int, schema: AnswerSchema) -> dict[str, Any]:
    """Answer one line; one that cannot be read is told with its number."""
    try:
        request = _read_line(line)
    except LineError as fault:
        error = {
            "type": "bad_input",
            "line": number,
            "column": 1,
            "message": str(fault),
        }
        nothing: dict[str, Any] = {
            "ok": False,
            "value": None,
            "repairs": [],
            "coerced": [],
        }
        return {"id": fault.given_id, **nothing, "error": error}
    asked = AnswerSchema(request.get("schema") or schema)
    return {
        "id": request.get("id"),
        **parse_answer(request["raw"], asked, request.get("finish_reason")),
    }


def _read_line(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE_BYTES:
        raise LineError(f"a line has at most {MAX_LINE_BYTES} bytes")
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LineError("a line is one JSON object") from error
    if not isinstance(request, dict):
        raise LineError("a line is one JSON object")
    given_id = request.get("id")
    if not isinstance(request.get("raw"), str):
        raise LineError('a line has the text of an answer as "raw"', given_id)
    for key in ("schema", "finish_reason"):
        if not isinstance(request.get(key), str | None):
            raise LineError(f'"{key}" is a text or null', given_id)
    if request.get("schema") and request["schema"] not in set(AnswerSchema):
        known = ", ".join(AnswerSchema)
        raise LineError(f'"schema" is one of {known}', given_id)
    return request
