"""What makers of models write around answers: finish reasons, refusals, thinking, tool calls.

The rows are in `makers.toml`; a new maker or language is a new row.
"""

import re
import tomllib
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

MAKERS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("makers.toml").read_text(encoding="utf-8")
)
for _row in MAKERS["refusals"]:
    if "says" in _row:
        _subject, _predicate, *_phrases = _row["says"]
        # Nothing but another predicate is between it and the end: no clause corrects the answer.
        _more = rf"(?:[,，;；]\s?(?:{_subject.removeprefix('^')}\s*)?(?:{_predicate}))?"
        _end = r"(?=[\s*_)`'\"]*(?:[.!:。！：؛\n]|\Z))"
        _said = rf"{_subject}\s*(?:{_predicate}){_more}{_end}"
        _row.setdefault("templates", []).extend([_said, *_phrases])


class FinishClass(StrEnum):
    """Why the generation of an answer ended, whatever its maker calls it."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    # The token limit.
    LENGTH = "length"
    # The stream, the server or the provider broke off.
    INTERRUPTED = "interrupted"
    # The provider, a filter or the model withheld the answer.
    BLOCK = "block"
    # The server could not read the tool call that the model wrote.
    MALFORMED = "malformed"
    # A reason that says nothing about the answer, or one that is not known.
    OTHER = "other"


# The answer may end too early.
CUT = frozenset({FinishClass.LENGTH, FinishClass.INTERRUPTED})
# An interrupted stream reports this reason.
STREAM_CUT = "stream_cut"
_GAPS = re.compile(r"[-_\s]+")
_ENUM_PREFIX = re.compile(r"(?:\w+\.)*(?:finish|stop)reason\.?")
_ENDINGS = {
    _GAPS.sub("", reason): FinishClass(ending)
    for ending, reasons in MAKERS["finish_reasons"].items()
    for reason in reasons
}


_STARTS = {r"\b": r"\b", "^": r"(?:\A|(?<=[.!?؟] )|(?<=[。！？\n]))"}


@lru_cache(maxsize=1000)
def ending_of(reason: str | None) -> FinishClass | None:
    """Return the class of a finish reason of any maker; None without a reason."""
    if reason is None or not reason.strip():
        return None
    name = _GAPS.sub("", reason.lower())
    return _ENDINGS.get(name) or _ENDINGS.get(
        _ENUM_PREFIX.sub("", name, count=1), FinishClass.OTHER
    )


def phrases(column: str, *, instead: str = "") -> str:
    """Return the phrases of all languages, as one pattern of text in lower case.

    A language without the column is represented by the column `instead`.
    """
    rows = (row.get(column, row.get(instead, ())) for row in MAKERS["refusals"])
    found = [phrase for row in rows for phrase in row]
    # What begins with a word or a sentence is tried only where one begins.
    groups: dict[str, list[str]] = {start: [] for start in _STARTS}
    others: list[str] = []
    for phrase in found:
        start = next((start for start in _STARTS if phrase.startswith(start)), None)
        (others if start is None else groups[start]).append(phrase.removeprefix(start or ""))
    begun = [rf"{_STARTS[start]}(?:{'|'.join(group)})" for start, group in groups.items() if group]
    return "|".join([*others, *begun])


# Behind one of these, nothing belongs to an answer.
END_MARKS = f"(?:{'|'.join(MAKERS['ends']['marks'])})(?!{MAKERS['ends']['assistant']})"
FIRST_SENTENCES = 400
_DECLINES = re.compile(phrases("declines"))
_OPENS = re.compile(rf"\W*(?:{phrases('opens')})")
_FAILS = re.compile(phrases("fails"))


def declines(text: str) -> bool:
    """Whether a text that holds no answer is a refusal, by its first sentences."""
    start = text.lstrip()[:FIRST_SENTENCES].lower()
    is_apology = _OPENS.match(start) is not None and _FAILS.search(start) is None
    return is_apology or _DECLINES.search(start) is not None
