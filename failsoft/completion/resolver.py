"""The one resolver of completion decisions, the same for every runner.

1. If a decision file exists, only it decides, as JSON or by its first line.
2. Otherwise a JSON document in the output decides: all of it, or whole lines of it.
3. Otherwise the words COMPLETE, INCOMPLETE, PASS and FAIL in the output decide.
4. Otherwise the check is undecidable. Never raises, for any text.
"""

import re
from typing import Any

from failsoft.completion.documents import decision_blocks, judge_document, read_document
from failsoft.completion.markers import MarkerLine, judge_lines, read_line, read_lines
from failsoft.completion.verdicts import (
    CheckDecision,
    CheckVerdict,
    DecisionSource,
    UndecidedCause,
    undecidable,
)
from failsoft.parsing import Recovered, recover
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
    """Whether a file is meant as JSON, valid or not."""
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
    """Return the decision that is the whole output, if it is one."""
    outcome = recover(text)
    if not isinstance(outcome, Recovered) or not isinstance(outcome.value, dict):
        return None
    is_whole = all(repair.kind != _AROUND for repair in outcome.repairs)
    return read_document(outcome) if is_whole and "decision" in outcome.value else None


def _document_of_lines(text: str) -> dict[str, Any] | UndecidedCause | None:
    """Return the only decision document among the lines of an output, if there is one."""
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
