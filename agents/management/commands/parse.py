"""`manage.py parse`: recover, coerce and check answers, JSON Lines in and out, no database."""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from functools import partial
from typing import IO, Any

from diagnostics.ingest.posted_answers import judge_answer
from diagnostics.management import LinesCommand
from failsoft.command import NOTHING_READ, REQUEST_KEYS, parse_line
from failsoft.json_lines import Line, LineError, answer_lines
from failsoft.retry.answers import AnswerSchema


class Command(LinesCommand):
    """Read `{"id", "raw"}` lines, write `{"id", "ok", "value", "repairs", ...}` lines."""

    help = (
        "Parse model answers from standard input, one JSON object per line: "
        '{"id": ..., "raw": "...", "schema": "...", "finish_reason": "..."}. A line with "tools", '
        '"tool_calls" or "answer_schema" is judged as a posted answer is.'
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--schema",
            choices=[schema.value for schema in AnswerSchema],
            default=AnswerSchema.NONE.value,
            help="schema of lines without their own",
        )

    def answers(self, lines: IO[bytes], options: Mapping[str, Any]) -> Iterator[Line]:
        return parse_lines(lines, AnswerSchema(options["schema"]))


def parse_lines(lines: IO[bytes], schema: AnswerSchema) -> Iterator[Line]:
    """Yield the answer of every line that is not blank, in order."""
    return answer_lines(lines, partial(_parse, schema), NOTHING_READ)


def _parse(schema: AnswerSchema, line: Line) -> Line:
    return parse_line(schema, line) if REQUEST_KEYS.isdisjoint(line) else _judge(line)


def _judge(line: Line) -> Line:
    parts = {key: line[key] for key in (*REQUEST_KEYS, "finish_reason") if key in line}
    try:
        return judge_answer({"text": line.get("raw"), **parts})
    # Of pydantic too: it writes no lone surrogates.
    except ValueError as error:
        raise LineError(str(error)) from None
