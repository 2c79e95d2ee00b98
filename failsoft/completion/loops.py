"""What follows a check: finish, go round, or give up and say why."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from failsoft.completion.specification import CheckSpec
from failsoft.completion.verdicts import CheckDecision


class Move(StrEnum):
    """What a loop does next."""

    FINISH = "finish"
    AGAIN = "again"
    # The allowed iterations are used up, and the loop is told to end without failing.
    END = "end"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Found:
    """What one decided check found."""

    decision: CheckDecision
    fingerprints: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CheckStreak:
    """What the last checks have in common: counts of consecutive ones, the last included."""

    undecidable: int
    same: int
    stalled: bool


@dataclass(frozen=True, slots=True)
class NextMove:
    """The next move, and the code and the sentence of why a loop ends without a decision."""

    move: Move
    code: str | None = None
    reason: str | None = None


def tally(spec: CheckSpec, found: Sequence[Found]) -> CheckStreak:
    """Count, over the decided checks of a loop in their order."""
    undecidable = _count_last([item.decision is CheckDecision.UNDECIDABLE for item in found])
    same = _count_last([_is_like_last(item, found[-1]) for item in found])
    return CheckStreak(undecidable, same, 0 < spec.stalled_after <= same)


def next_turn(
    spec: CheckSpec, found: Sequence[Found], iteration: int, max_iterations: int
) -> NextMove:
    """Decide what follows the last of the checks `found`, which is of `iteration`."""
    last, counts = found[-1], tally(spec, found)
    if last.decision is CheckDecision.COMPLETE:
        return NextMove(Move.FINISH)
    if 0 < spec.undecidable_limit < counts.undecidable:
        reason = (
            f"{counts.undecidable} checks in a row could not be decided, "
            f"{spec.undecidable_limit} are allowed; the last cause: {last.reason}"
        )
        return NextMove(Move.FAIL, "undecidable_limit_exceeded", reason)
    if counts.stalled and spec.on_stalled == "abort":
        reason = f"{counts.same} checks in a row found the same: {_listed(last)}"
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


def _is_like_last(item: Found, last: Found) -> bool:
    """Whether both are incomplete for the same reasons; without fingerprints nobody knows."""
    return (
        item.decision is last.decision is CheckDecision.INCOMPLETE
        and bool(last.fingerprints)
        and frozenset(item.fingerprints) == frozenset(last.fingerprints)
    )


def _listed(found: Found) -> str:
    return ", ".join(sorted(found.fingerprints)[:5])
