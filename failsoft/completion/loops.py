"""The next move of a loop after a check: finish, iterate again, or end with a reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from failsoft.completion.specification import CheckSpec
from failsoft.completion.verdicts import CheckDecision


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
