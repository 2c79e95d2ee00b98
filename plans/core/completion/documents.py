"""A structured decision: `{"decision", "check_id", "reasons", "fingerprints"}` (s3, X-13).

Read by the recovering parser, but never from a text that was cut off or held a second
document; the id is compared exactly, with no trimming and no folding of case.
"""

import json
from typing import Any

from diagnostics.core.cleaning import clean_text
from diagnostics.core.events import ParseErrorType
from diagnostics.core.recovery import Refused, recover
from plans.core.completion.verdicts import (
    Cause,
    Decision,
    Source,
    Verdict,
    show_id,
    undecidable,
)

DECISIONS = {
    "complete": Decision.COMPLETE,
    "pass": Decision.COMPLETE,
    "incomplete": Decision.INCOMPLETE,
    "fail": Decision.INCOMPLETE,
}
MAX_REASONS = 20
MAX_REASON_CHARACTERS = 500
MAX_FINGERPRINTS = 50
MAX_FINGERPRINT_CHARACTERS = 200

_CAUSES = {
    ParseErrorType.TRUNCATED: Cause.TRUNCATED,
    ParseErrorType.MULTIPLE_OBJECTS: Cause.MULTIPLE_DOCUMENTS,
    ParseErrorType.DUPLICATE_KEY: Cause.DUPLICATE_KEY,
}
# Repairs that are good enough for a plan, but too little to believe a COMPLETE.
_DOUBTS = {
    "missing_closer": Cause.TRUNCATED,
    "tail_cut": Cause.TRUNCATED,
    "repeated_answer": Cause.MULTIPLE_DOCUMENTS,
}


def read_document(text: str) -> dict[str, Any] | Cause:
    """Return the one object of a text, or why there is none."""
    found = recover(text)
    if isinstance(found, Refused):
        return _CAUSES.get(found.error_type, Cause.INVALID_JSON)
    for repair in found.repairs:
        if repair.kind in _DOUBTS:
            return _DOUBTS[repair.kind]
    return found.value if isinstance(found.value, dict) else Cause.NOT_AN_OBJECT


def judge_document(document: dict[str, Any], source: Source, expected: str | None) -> Verdict:
    """Decide from a document; without its check's own id it decides nothing good."""
    said = document.get("decision")
    decision = DECISIONS.get(said.lower()) if isinstance(said, str) else None
    if decision is None:
        if "decision" not in document:
            return undecidable(source, Cause.MISSING_DECISION)
        return undecidable(source, Cause.UNKNOWN_DECISION, show_id(said))
    got = document.get("check_id")
    if got is None:
        return undecidable(source, Cause.MISSING_CHECK_ID)
    if expected is None:
        return undecidable(source, Cause.NO_EXPECTED_ID)
    if got != expected:
        detail = f"expected {show_id(expected)}, got {show_id(got)}"
        return Verdict(Decision.INCOMPLETE, source, False, Cause.CHECK_ID_MISMATCH, detail)
    return Verdict(
        decision,
        source,
        check_id_match=True,
        reasons=_texts(document.get("reasons"), MAX_REASONS, MAX_REASON_CHARACTERS),
        fingerprints=_texts(
            document.get("fingerprints"), MAX_FINGERPRINTS, MAX_FINGERPRINT_CHARACTERS
        ),
    )


def _texts(value: object, most: int, characters: int) -> tuple[str, ...]:
    """A list of texts out of whatever was given; what is no text is written as JSON."""
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    return tuple(_text(item)[:characters] for item in items[:most])


def _text(item: object) -> str:
    written = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    return clean_text(written)
