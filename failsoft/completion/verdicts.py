"""The verdict of a completion check, its source and its cause, and the next move of its loop."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from failsoft.completion.specification import CheckSpec

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


class Move(StrEnum):
    FINISH = "finish"
    AGAIN = "again"
    # The iterations are exhausted, and `on_exhausted` is `continue`.
    END = "end"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class DecidedCheck:
    decision: CheckDecision
    fingerprints: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CheckStreak:
    """Counts of consecutive checks up to the last one."""

    undecidable: int
    same: int
    stalled: bool


@dataclass(frozen=True, slots=True)
class NextMove:
    """The next move, and the code and reason of a loop that ends without a decision."""

    move: Move
    code: str | None = None
    reason: str | None = None


def count_streak(spec: CheckSpec, checks: Sequence[DecidedCheck]) -> CheckStreak:
    """Count the streaks of the decided checks of a loop, given in order."""
    undecidable = _count_last([item.decision is CheckDecision.UNDECIDABLE for item in checks])
    same = _count_last([_is_like_last(item, checks[-1]) for item in checks])
    return CheckStreak(undecidable, same, 0 < spec.stalled_after <= same)


def next_turn(
    spec: CheckSpec, checks: Sequence[DecidedCheck], iteration: int, max_iterations: int
) -> NextMove:
    """Return the move after the last of `checks`, which is that of `iteration`."""
    last, counts = checks[-1], count_streak(spec, checks)
    if last.decision is CheckDecision.COMPLETE:
        return NextMove(Move.FINISH)
    if 0 < spec.undecidable_limit < counts.undecidable:
        reason = (
            f"{counts.undecidable} checks in a row could not be decided, "
            f"{spec.undecidable_limit} are allowed; the last cause: {last.reason}"
        )
        return NextMove(Move.FAIL, "undecidable_limit_exceeded", reason)
    if counts.stalled and spec.on_stalled == "abort":
        names = ", ".join(sorted(last.fingerprints)[:5])
        reason = f"{counts.same} checks in a row found the same: {names}"
        return NextMove(Move.FAIL, "stalled", reason)
    if iteration < max_iterations:
        return NextMove(Move.AGAIN)
    reason = f"not complete after {max_iterations} iterations"
    if spec.on_exhausted == "continue":
        return NextMove(Move.END, "max_iterations_reached", reason)
    return NextMove(Move.FAIL, "max_iterations_reached", reason)


def _count_last(matches: Sequence[bool]) -> int:
    count = 0
    for matched in reversed(matches):
        if not matched:
            break
        count += 1
    return count


def _is_like_last(check: DecidedCheck, last: DecidedCheck) -> bool:
    """Whether both are incomplete with equal fingerprints; without any it is unknown."""
    return (
        check.decision is last.decision is CheckDecision.INCOMPLETE
        and bool(last.fingerprints)
        and frozenset(check.fingerprints) == frozenset(last.fingerprints)
    )
