"""The verdict of a completion check, its source and its cause."""

import json
from dataclasses import dataclass
from enum import StrEnum

MAX_SHOWN_ID = 100


class CheckDecision(StrEnum):
    """The decision of a check that did not crash."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    UNDECIDABLE = "undecidable"


# The words of a checker, in any letter case.
DECISIONS = {
    "complete": CheckDecision.COMPLETE,
    "pass": CheckDecision.COMPLETE,
    "incomplete": CheckDecision.INCOMPLETE,
    "fail": CheckDecision.INCOMPLETE,
}


class DecisionSource(StrEnum):
    """The source of a decision, in order of precedence."""

    FILE_JSON = "file-json"
    FILE_TEXT = "file-text"
    STDOUT_JSON = "stdout-json"
    MARKER = "marker"
    NONE = "none"


class UndecidedCause(StrEnum):
    """Why a check is undecidable, or its decision was rejected."""

    MISSING_DECISION = "missing_decision"
    EMPTY_FILE = "empty_file"
    UNREADABLE_FILE = "unreadable_file"
    TOO_LARGE = "too_large"
    UNKNOWN_TEXT = "unknown_text"
    INVALID_JSON = "invalid_json"
    TRUNCATED = "truncated"
    MULTIPLE_DOCUMENTS = "multiple_documents"
    DUPLICATE_KEY = "duplicate_key"
    NOT_AN_OBJECT = "not_an_object"
    UNKNOWN_DECISION = "unknown_decision"
    MISSING_CHECK_ID = "missing_check_id"
    # There is no expected id to compare.
    NO_EXPECTED_ID = "no_expected_check_id"
    CHECK_ID_MISMATCH = "check_id_mismatch"
    CONFLICTING_MARKERS = "conflicting_markers"
    # The text says complete, but contains the id of another check.
    FOREIGN_CHECK_ID = "foreign_check_id"
    OUTPUT_CUT = "output_cut"


@dataclass(frozen=True, slots=True)
class CheckVerdict:
    """One decision; `check_id_match` is null when there was no id to compare.

    `reason` begins with the code of `cause`; both are null for a valid decision. `reasons` and
    `fingerprints` come from the checker: bounded, not redacted.
    """

    decision: CheckDecision
    source: DecisionSource
    check_id_match: bool | None = None
    cause: UndecidedCause | None = None
    detail: str = ""
    reasons: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()

    @property
    def reason(self) -> str | None:
        if self.cause is None:
            return None
        return f"{self.cause}: {self.detail}" if self.detail else self.cause.value


def undecidable(source: DecisionSource, cause: UndecidedCause, detail: str = "") -> CheckVerdict:
    return CheckVerdict(CheckDecision.UNDECIDABLE, source, None, cause, detail)


def show_id(value: object) -> str:
    shown = json.dumps(value, ensure_ascii=True, default=str)
    return shown if len(shown) <= MAX_SHOWN_ID else f"{shown[:MAX_SHOWN_ID]}..."
