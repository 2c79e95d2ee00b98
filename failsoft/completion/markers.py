"""Decisions written as words: COMPLETE, PASS, INCOMPLETE, FAIL.

1. A line that is one of the words, without Markdown and quotes, is a decision; so is a word
   after `DECISION:` or `VERDICT:` at the beginning of a line.
2. A line that begins with INCOMPLETE or FAIL and continues with a reason is a decision, too.
3. INCOMPLETE and FAIL as upper-case words in a sentence count when no line says complete.
4. Contradicting lines decide nothing. Doubt is never COMPLETE: another loop costs less.
"""

import re
from collections.abc import Set
from enum import Enum, auto

from failsoft.completion.verdicts import (
    DECISIONS,
    CheckDecision,
    CheckVerdict,
    DecisionSource,
    UndecidedCause,
    show_id,
    undecidable,
)

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_SPACES = " \t\u00a0\u200b\ufeff"
_QUOTES = "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb"
_WRAP = f"*_`{_QUOTES}{_SPACES}"
# A bullet is followed by a space; `-COMPLETE` is a line of a diff.
_PREFIX = re.compile(r"(?:>[ \t]*|#{1,6}[ \t]+|[-+*\u2022][ \t]+|[0-9]{1,3}[.)][ \t]+)+")
_LABELLED = re.compile(
    r"(?:(?:the|my|final|overall|completion|review)[ \t]+)*(?:decision|verdict)"
    rf"[*_` \t]*:[{re.escape(_WRAP)}]*(complete|incomplete|pass|fail)(?![\w-])(.*)",
    re.IGNORECASE,
)
_REASONED = re.compile(r"(?:INCOMPLETE|FAIL)[*_`\"']*[ \t]*[:,;(\u2013\u2014-].*")
_IN_SENTENCE = re.compile(r"(?<![\w-])(?:INCOMPLETE|FAIL)(?![\w-])")
_EXPLAINED = re.compile(r"[ \t]*[.,;:!(\u2013\u2014-]+[ \t]*\w.*")
_DOUBT = re.compile(
    r"\?|n[\u2019']t\b|\b(?:not|no|never|none|if|when|once|unless|until|except|but|after"
    r"|pending|would|should|could|will|however|although|though|or|incomplete|fail\w*"
    r"|complete|pass|todo|remain\w*|missing|only|almost|nearly|partial\w*|still|yet"
    r"|maybe|perhaps|assuming|provided|without|before|cannot|unverified|untested|nothing|half"
    r"|apart|aside|exclud\w*|minus|save for|skipp\w*|open|(?<!\b0 )errors?|broken|breaks?"
    r"|wip|red|follows?|wait\w*|needs?|needed|requires?|unfortunately|blocked|unclear|unsure"
    r"|guess\w*|later|soon)\b"
    r"|(?<!\b100)%|\b(\d+) (?:of|out of) (?!\1\b)\d|\b(\d+)/(?!\2\b)\d",
    re.IGNORECASE,
)
# At the end of a line, these make the next line a part of the sentence.
_DANGLING = re.compile(
    r"(?:n[\u2019']t|(?<!\b100)%|\b(?:not|never|cannot|no|nearly|almost|if|unless|until|when|once"
    r"|or|be|being|without|before|than|but|except|yet|say|write|with|print|nicht|kein"
    r"|pas|jamais|niet|geen|não|nunca|non|nie|не|ещё))$",
    re.IGNORECASE,
)
# In the line above, these announce an example or a condition, not a decision.
_ANNOUNCED = re.compile(
    r"\b(?:if|when|once|unless|until|would|should|could|example|expected|format|either|one of"
    r"|possible|options?|choices?|allowed|wanted|before|earlier|previously|instruct\w*"
    r"|(?:write|reply|respond|say|print|output))\b",
    re.IGNORECASE,
)
_LONGEST_WORD = 20
_NAMED_ID = re.compile(
    r"check[_ -]?id[\"'`*_]*[ \t]*[:=][ \t]*[\"'`*]*([^\s\"'`,}*]+)", re.IGNORECASE
)


class MarkerLine(Enum):
    COMPLETE = auto()
    INCOMPLETE = auto()
    # As a word in a sentence.
    MENTIONED = auto()


def read_line(line: str, before: str = "") -> MarkerLine | None:
    """Return the decision in a line; `before` is the last non-empty line above it."""
    plain = _ANSI.sub("", line)
    text = _strip(plain)
    word = DECISIONS.get(text.lower())
    if word is CheckDecision.INCOMPLETE:
        return MarkerLine.INCOMPLETE
    if word is CheckDecision.COMPLETE:
        return None if _continues_sentence(_strip(before)) else MarkerLine.COMPLETE
    labelled = _read_labelled(text)
    if labelled is not None:
        return labelled
    if _REASONED.fullmatch(text):
        return MarkerLine.INCOMPLETE
    return MarkerLine.MENTIONED if _IN_SENTENCE.search(plain) else None


def read_lines(text: str) -> set[MarkerLine]:
    lines = [line for line in text.splitlines() if line.strip(_SPACES)]
    pairs = zip(lines, ["", *lines], strict=False)
    return set(filter(None, (read_line(*pair) for pair in pairs)))


def judge_lines(
    marker_lines: Set[MarkerLine], text: str, source: DecisionSource, expected: str | None
) -> CheckVerdict:
    """Return the verdict of marker lines; `text` may still name the id of another check.

    Without a marker line the verdict is undecidable, with source none.
    """
    if {MarkerLine.COMPLETE, MarkerLine.INCOMPLETE} <= marker_lines:
        return undecidable(source, UndecidedCause.CONFLICTING_MARKERS)
    if MarkerLine.COMPLETE in marker_lines:
        foreign_id = _foreign_id(text, expected)
        if foreign_id is not None:
            return undecidable(source, UndecidedCause.FOREIGN_CHECK_ID, show_id(foreign_id))
        return CheckVerdict(CheckDecision.COMPLETE, source)
    if marker_lines:
        return CheckVerdict(CheckDecision.INCOMPLETE, source)
    return undecidable(DecisionSource.NONE, UndecidedCause.MISSING_DECISION)


def _continues_sentence(before: str) -> bool:
    """Whether the line above makes the word the end of a sentence, or an example."""
    if before.endswith(":"):
        return _ANNOUNCED.search(before) is not None
    return _DANGLING.search(before[-_LONGEST_WORD:]) is not None


def _strip(line: str) -> str:
    text = line.strip(_SPACES)
    prefix = _PREFIX.match(text)
    return text[prefix.end() if prefix else 0 :].strip(_WRAP)


def _read_labelled(text: str) -> MarkerLine | None:
    match = _LABELLED.fullmatch(text)
    if match is None:
        return None
    if DECISIONS[match[1].lower()] is CheckDecision.INCOMPLETE:
        return MarkerLine.INCOMPLETE
    rest = match[2].strip(_WRAP)
    is_explained = _EXPLAINED.fullmatch(rest) and not _DOUBT.search(rest)
    if rest in ("", ".", "!") or is_explained:
        return MarkerLine.COMPLETE
    return MarkerLine.MENTIONED if _IN_SENTENCE.search(rest) else None


def _foreign_id(text: str, expected: str | None) -> str | None:
    if expected is None:
        return None
    check_ids = (match[1] for match in _NAMED_ID.finditer(text))
    return next((check_id for check_id in check_ids if check_id.rstrip(".;)") != expected), None)
