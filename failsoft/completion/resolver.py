"""The one resolver of completion decisions, the same for every runner.

1. If a decision file exists, only it decides, as JSON or by its first line.
2. Otherwise a JSON document in the output decides: all of it, or whole lines of it.
3. Otherwise the words COMPLETE, INCOMPLETE, PASS and FAIL in the output decide.
4. Otherwise the check is undecidable. Never raises, for any text.

A document is `{"decision", "check_id", "reasons", "fingerprints"}`. It is parsed with repairs, but
never from a truncated text or one with a second document. The id is compared exactly, without
trimming or case folding.
"""

import json
import re
from typing import Any

from failsoft.completion.markers import MarkerLine, judge_lines, read_line, read_lines
from failsoft.completion.verdicts import (
    DECISIONS,
    CheckDecision,
    CheckVerdict,
    DecisionSource,
    UndecidedCause,
    show_id,
    undecidable,
)
from failsoft.events import ParseErrorType
from failsoft.json_values import clean_text
from failsoft.parsing import Recovered, RefusedAnswer, recover
from failsoft.parsing.faults import ParseFault
from failsoft.parsing.thinking import drop_thinking
from failsoft.parsing.tracing import MAX_BYTES

_STRUCTURED = re.compile(r"[{\[]|[\"']decision[\"']\s*:|check_id[\"']?\s*[:=]")
# An answer that is the whole output does not have this repair.
_AROUND = "prose"


def resolve_completion_decision(
    file: str | None, output: str, check_id: str | None, *, output_is_cut: bool = False
) -> CheckVerdict:
    """Return the verdict of a check (spec: `resolveCompletionDecision`).

    `file` is the text of the decision file, None when there is none; `check_id` is the id of
    the check. A truncated output is never complete.
    """
    expected = check_id or None
    if file is not None:
        return parse_completion_decision_from_file(file, expected)
    verdict = _judge_output(output, expected)
    if output_is_cut and verdict.decision is CheckDecision.COMPLETE:
        return undecidable(verdict.source, UndecidedCause.OUTPUT_CUT)
    return verdict


def parse_completion_decision_from_file(text: str, expected: str | None) -> CheckVerdict:
    """Return the verdict of a decision file (spec: `parseCompletionDecisionFromFile`)."""
    if len(text) > MAX_BYTES:
        return undecidable(DecisionSource.FILE_TEXT, UndecidedCause.TOO_LARGE)
    lines = (line.strip(" \t\ufeff\u200b\u00a0") for line in text.splitlines())
    first = next((line for line in lines if line), None)
    if first is None:
        return undecidable(DecisionSource.FILE_TEXT, UndecidedCause.EMPTY_FILE)
    outcome = recover(text)
    if _is_structured(text, first, outcome):
        document = read_document(outcome)
        if isinstance(document, UndecidedCause):
            return undecidable(DecisionSource.FILE_JSON, document)
        verdict = judge_document(document, DecisionSource.FILE_JSON, expected)
        if verdict.decision is CheckDecision.COMPLETE and MarkerLine.INCOMPLETE in read_lines(text):
            return undecidable(DecisionSource.FILE_JSON, UndecidedCause.CONFLICTING_MARKERS)
        return verdict
    marker_line = read_line(first)
    if marker_line is None:
        return undecidable(DecisionSource.FILE_TEXT, UndecidedCause.UNKNOWN_TEXT)
    return judge_lines({marker_line}, text, DecisionSource.FILE_TEXT, expected)


def _is_structured(text: str, first: str, outcome: object) -> bool:
    if not isinstance(outcome, Recovered):
        return _STRUCTURED.search(text) is not None
    if isinstance(outcome.value, dict) and "decision" in outcome.value:
        return True
    # A text verdict followed by JSON stays a text verdict.
    return first[0] in "{[`~" or read_line(first) is None


def _judge_output(output: str, expected: str | None) -> CheckVerdict:
    if len(output) > MAX_BYTES:
        return undecidable(DecisionSource.NONE, UndecidedCause.TOO_LARGE)
    try:
        text = drop_thinking(output)
    except ParseFault:
        # The output ends inside a thinking block, which is no decision.
        return undecidable(DecisionSource.NONE, UndecidedCause.TRUNCATED)
    document = _whole_document(text)
    if document is None:
        document = _document_of_lines(text)
    if isinstance(document, UndecidedCause):
        return undecidable(DecisionSource.STDOUT_JSON, document)
    if document is not None:
        return judge_document(document, DecisionSource.STDOUT_JSON, expected)
    return judge_lines(read_lines(text), text, DecisionSource.MARKER, expected)


def _whole_document(text: str) -> dict[str, Any] | UndecidedCause | None:
    outcome = recover(text)
    if not isinstance(outcome, Recovered) or not isinstance(outcome.value, dict):
        return None
    is_whole = all(repair.kind != _AROUND for repair in outcome.repairs)
    return read_document(outcome) if is_whole and "decision" in outcome.value else None


def _document_of_lines(text: str) -> dict[str, Any] | UndecidedCause | None:
    documents = [_read_block(block) for block in decision_blocks(text)]
    decisions = [item for item in documents if item is not None]
    if len(decisions) > 1:
        return UndecidedCause.MULTIPLE_DOCUMENTS
    return decisions[0] if decisions else None


def _read_block(text: str) -> dict[str, Any] | UndecidedCause | None:
    document = read_document(recover(text))
    if isinstance(document, dict) and "decision" not in document:
        # The key is in a nested object: this is no decision document.
        return None
    return document


MAX_REASONS = 20
MAX_REASON_CHARACTERS = 500
MAX_FINGERPRINTS = 50
MAX_FINGERPRINT_CHARACTERS = 200
_CAUSES = {
    ParseErrorType.TRUNCATED: UndecidedCause.TRUNCATED,
    ParseErrorType.MULTIPLE_OBJECTS: UndecidedCause.MULTIPLE_DOCUMENTS,
    ParseErrorType.DUPLICATE_KEY: UndecidedCause.DUPLICATE_KEY,
}
# Repairs that are acceptable for a plan, but make a COMPLETE doubtful.
_DOUBTS = {
    "missing_closer": UndecidedCause.TRUNCATED,
    "tail_cut": UndecidedCause.TRUNCATED,
    "repeated_answer": UndecidedCause.MULTIPLE_DOCUMENTS,
}


def read_document(outcome: Recovered | RefusedAnswer) -> dict[str, Any] | UndecidedCause:
    """Return the only object in the parsed text, or why there is none."""
    if isinstance(outcome, RefusedAnswer):
        return _CAUSES.get(outcome.error_type, UndecidedCause.INVALID_JSON)
    for repair in outcome.repairs:
        if repair.kind in _DOUBTS:
            return _DOUBTS[repair.kind]
    return outcome.value if isinstance(outcome.value, dict) else UndecidedCause.NOT_AN_OBJECT


def judge_document(
    document: dict[str, Any], source: DecisionSource, expected: str | None
) -> CheckVerdict:
    """Return the verdict of a document; without the id of its check it is never complete."""
    written_decision = document.get("decision")
    decision = (
        DECISIONS.get(written_decision.lower()) if isinstance(written_decision, str) else None
    )
    if decision is None:
        if "decision" not in document:
            return undecidable(source, UndecidedCause.MISSING_DECISION)
        return undecidable(source, UndecidedCause.UNKNOWN_DECISION, show_id(written_decision))
    document_id = document.get("check_id")
    if document_id is None:
        return undecidable(source, UndecidedCause.MISSING_CHECK_ID)
    if expected is None:
        return undecidable(source, UndecidedCause.NO_EXPECTED_ID)
    if document_id != expected:
        detail = f"expected {show_id(expected)}, got {show_id(document_id)}"
        return CheckVerdict(
            CheckDecision.INCOMPLETE, source, False, UndecidedCause.CHECK_ID_MISMATCH, detail
        )
    return CheckVerdict(
        decision,
        source,
        check_id_match=True,
        reasons=_texts(document.get("reasons"), MAX_REASONS, MAX_REASON_CHARACTERS),
        fingerprints=_texts(
            document.get("fingerprints"), MAX_FINGERPRINTS, MAX_FINGERPRINT_CHARACTERS
        ),
    )


def _texts(value: object, max_items: int, max_characters: int) -> tuple[str, ...]:
    """Return any value as a list of texts; items of other types become JSON."""
    items = value if isinstance(value, list) else [] if value is None else [value]
    written = (
        item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
        for item in items[:max_items]
    )
    return tuple(clean_text(text)[:max_characters] for text in written)


# The key of a decision at any depth; parsing shows whether it is at the top level.
_DECISION = re.compile(r"(?<![\\\w])decision[\"']?\s*[:=]")
# On the lines around a document, these make it an example, or say on what it depends.
_CONDITION_BEFORE = re.compile(
    r"\b(?:if|unless|until|would|example)\b"
    r"|(?:\bcannot|n[\u2019']t) (?:say|write|answer|give|call|report|return|confirm)\b",
    re.IGNORECASE,
)
_CONDITION_BEHIND = re.compile(
    r"\W*(?!\W)(?:(?:once|if|when|unless|until|after|provided|as soon as|but|except)\b"
    r"|[^.!?]*\b(?:ignore|disregard|scratch|forget) (?:that|this|it|the above)\b)",
    re.IGNORECASE,
)
_BLANKS = frozenset("`~ \t\n")
_LINE_BEHIND = re.compile(r"[`~ \t\n]*([^\n]*)")
_SYMBOLS = re.compile(r'[{}"\n]|\\.')
_MARGIN = " \t\ufeff\u200b"


def decision_blocks(text: str) -> list[str]:
    """Return the documents that contain the key `decision`, in order.

    The last one may be truncated, with a brace that is never closed.
    """
    pairs, unclosed = _match_braces(text)
    spans = [span for span in _outermost(pairs) if _ends_line(text, span[1])]
    blocks = [text[start:end] for start, end in spans if not _is_conditional(text, start, end)]
    candidates = [block for block in blocks if _DECISION.search(block)]
    if unclosed:
        rest = _rest_after(text, unclosed[-1], spans)
        candidates += [rest] if _DECISION.search(rest) else []
    return candidates


def _is_conditional(text: str, start: int, end: int) -> bool:
    """Whether the line before or behind a document makes it an example or a condition."""
    before = _line_before(text, start).rpartition(". ")[2]
    behind = _LINE_BEHIND.match(text, end)
    is_sentence = not before.endswith((".", "!", "}"))
    return (is_sentence and _CONDITION_BEFORE.search(before) is not None) or (
        behind is not None and _CONDITION_BEHIND.match(behind[1]) is not None
    )


def _line_before(text: str, end: int) -> str:
    while text[end - 1 : end] in _BLANKS:
        end -= 1
    return text[text.rfind("\n", 0, end) + 1 : end]


def _match_braces(text: str) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the spans of closed braces that begin a line, and the offsets of unclosed ones."""
    pairs: list[tuple[int, int]] = []
    opened: list[tuple[int, bool]] = []
    is_quoted, line_start = False, 0
    for symbol in _SYMBOLS.finditer(text):
        match symbol.group():
            case "\n":
                # A string never spans lines; a stray quote in prose ends with its line.
                is_quoted, line_start = False, symbol.end()
            case '"':
                is_quoted = not is_quoted
            case "{" if not is_quoted:
                before = text[line_start : symbol.start()]
                opened.append((symbol.start(), not before.strip(_MARGIN)))
                line_start = symbol.start() if before else line_start
            case "}" if not is_quoted and opened:
                start, begins_line = opened.pop()
                if begins_line:
                    pairs.append((start, symbol.end()))
    return pairs, [start for start, begins_line in opened if begins_line]


def _outermost(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for start, end in sorted(pairs):
        if not spans or start >= spans[-1][1]:
            spans.append((start, end))
    return spans


def _ends_line(text: str, end: int) -> bool:
    line_end = text.find("\n", end)
    return not text[end : len(text) if line_end < 0 else line_end].strip()


def _rest_after(text: str, start: int, closed: list[tuple[int, int]]) -> str:
    parts, at = [], start
    for begin, end in closed:
        if begin > start and _DECISION.search(text, begin, end):
            parts.append(text[at:begin])
            at = end
    return "".join([*parts, text[at:]])
