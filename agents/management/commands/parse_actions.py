"""`manage.py parse_actions`: decode tool calls, JSON Lines in and out, no database."""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from functools import partial
from typing import IO, Any

from diagnostics.management import LinesCommand
from failsoft.actions.decoding import decode_tool_calls
from failsoft.actions.entries import TOOLSETS
from failsoft.actions.results import ParseResult, without_model_text
from failsoft.actions.toolsets import Toolset
from failsoft.json_lines import Line, LineError, answer_lines


class Command(LinesCommand):
    """Read `{"id", "tool_calls"}` lines, write `{"id", "actions", "failures", "coerced"}` lines."""

    help = (
        "Decode tool calls from standard input, one JSON object per line: "
        '{"id": ..., "tool_calls": [...]}.'
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--toolset", required=True, choices=sorted(TOOLSETS), help="toolset of the calls"
        )

    def answers(self, lines: IO[bytes], options: Mapping[str, Any]) -> Iterator[Line]:
        return answer_lines(lines, partial(decode, TOOLSETS[options["toolset"]]), NOTHING)


def decode(toolset: Toolset, line: Line) -> Line:
    """Return the decoded calls of one line; LineError when it has none."""
    if "tool_calls" not in line:
        raise LineError("expected tool_calls", code="missing")
    return _describe(decode_tool_calls(line["tool_calls"], toolset))


def _describe(result: ParseResult) -> Line:
    return {
        "actions": [action.flat() for action in result.actions],
        "failures": [without_model_text(failure) for failure in result.failures],
        "coerced": [without_model_text(item) for item in result.coerced],
        "repairs": [repair.model_dump() for repair in result.repairs],
    }


NOTHING = _describe(ParseResult())
