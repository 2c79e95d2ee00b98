"""Step ids: what may be one, and the `step_k` sequence (S2-7, S2-14..16)."""

import re

from plans.core.contract import MAX_STEPS, META_STEP_ID
from plans.core.violations import Violations, kind_of, quote

_PREFIX = "step_"
_PLAIN = re.compile(r"(?:step_[1-9][0-9]{0,8}|(?!step_|__)[A-Za-z_][A-Za-z0-9_]*)\Z")
_NUMBERED = re.compile(r"step_([1-9][0-9]*)\Z")


def check_step_id(step_id: object, path: str, found: Violations) -> bool:
    """Check one id by itself; return whether it may be declared."""
    refusal = _refuse(step_id)
    if refusal is None:
        return True
    found.add(path, *refusal)
    return False


def _refuse(step_id: object) -> tuple[str, str] | None:
    if not isinstance(step_id, str):
        return "step_id_type", f"expected a non-empty string, got {kind_of(step_id)}"
    if _PLAIN.match(step_id):
        # The usual case, decided cheaply.
        return None
    if not step_id.strip():
        return "step_id_empty", "expected a non-empty string, got an empty one"
    if step_id != step_id.strip():
        return "step_id_padded", f"expected no space around the id {quote(step_id)}"
    if step_id == META_STEP_ID:
        return "step_id_reserved", f"{quote(META_STEP_ID)} is the id of the summary"
    if not step_id.isprintable() and _has_control(step_id):
        return "step_id_characters", "expected an id without control characters"
    return _refuse_number(step_id)


def _refuse_number(step_id: str) -> tuple[str, str] | None:
    rest = step_id.removeprefix(_PREFIX).lstrip("+-")
    if not step_id.startswith(_PREFIX) or not rest.isnumeric() or _NUMBERED.match(step_id):
        return None
    return (
        "step_id_number",
        f"expected step_1, step_2, ... in plain digits without leading zeros, got {quote(step_id)}",
    )


def _has_control(step_id: str) -> bool:
    return any(char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff"
               for char in step_id)  # fmt: skip


def number_of(step_id: str) -> int | None:
    """Return k of a `step_k` id, or None for a named one.

    A number no plan can reach counts as one past the largest possible.
    """
    match = _NUMBERED.match(step_id)
    if match is None:
        return None
    digits = match[1]
    return int(digits) if len(digits) <= len(str(MAX_STEPS)) else MAX_STEPS + 1


def check_sequence(index_of: dict[str, int], found: Violations) -> None:
    """Check that the `step_k` ids are step_1 to step_N without gaps, in any order.

    `index_of` maps each declared id to its place among the steps.
    """
    numbered = sorted(
        (number, index_of[step_id], step_id)
        for step_id in index_of
        if (number := number_of(step_id)) is not None
    )
    previous = 0
    for number, index, step_id in numbered:
        if number > previous + 1:
            found.add(f"/steps/{index}/step_id", *_explain_gap(previous, step_id))
        previous = number


def _explain_gap(previous: int, step_id: str) -> tuple[str, str]:
    if previous == 0:
        return (
            "step_sequence_start",
            f"expected the ids to start at step_1, got {quote(step_id)}",
        )
    missing = f'"{_PREFIX}{previous + 1}"'
    return (
        "step_sequence_gap",
        f'expected {missing} after "{_PREFIX}{previous}", got {quote(step_id)}',
    )
