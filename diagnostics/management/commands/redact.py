"""`manage.py redact`: mask secrets in texts, JSON Lines in and out, no database."""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from functools import partial
from typing import IO, Any

from diagnostics.management import LinesCommand
from failsoft.json_lines import Line, LineError, answer_lines
from failsoft.redaction import Redactor
from failsoft.redaction.known_values import WeakSecretError, encodings
from failsoft.redaction.rules import RuleSet, load_rule_set

MAX_KNOWN = 1_000


class Command(LinesCommand):
    """Read `{"id", "text"}` lines, write `{"id", "text", "found"}` lines."""

    help = (
        "Redact texts from standard input, one JSON object per line: "
        '{"id": ..., "text": "...", "limit": bytes, "known": ["value", ...]}; '
        "limit and known are optional."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--emails", action="store_true", help="mask e-mail addresses too")

    def answers(self, lines: IO[bytes], options: Mapping[str, Any]) -> Iterator[Line]:
        rules = load_rule_set(emails=options["emails"])
        return answer_lines(lines, partial(_redact, rules, Redactor(rules, {})), {})


def _redact(rules: RuleSet, plain: Redactor, line: Line) -> Line:
    if not isinstance(line.get("text"), str):
        raise LineError("text is a string")
    limit = line.get("limit")
    is_count = isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0
    if limit is not None and not is_count:
        raise LineError("limit must be a number of bytes, 0 or more")
    known, refused = _read_known(line)
    redactor = Redactor(rules, known) if known else plain
    redacted = redactor.redact(line["text"], line.get("limit"))
    answer: Line = {"text": redacted.text, "found": list(redacted.found)}
    return answer | ({"refused": refused} if refused else {})


def _read_known(line: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return the values to mask, and the refused ones by their positions."""
    values = line.get("known") or []
    if not isinstance(values, list) or len(values) > MAX_KNOWN:
        raise LineError(f"known must be a list of at most {MAX_KNOWN} strings")
    known, refused = dict[str, str](), list[str]()
    for place, value in enumerate(values):
        if not isinstance(value, str):
            raise LineError(f"known[{place}] is not a string")
        try:
            encodings(value)
        except WeakSecretError as error:
            refused.append(f"known[{place}]: {error}")
        else:
            known[value] = "known"
    return known, refused
