"""Whether a recovered value is what was asked for: softened (X-20), checked, every error placed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agents.core import proposals
from agents.core.coercion import (
    DECISIONS,
    Softened,
    Softer,
    soften_decision,
    soften_plan,
    soften_proposal,
)
from agents.core.positions import pointer_of
from agents.core.proposals import PROPOSALS
from diagnostics.core.events import MAX_ERRORS, Coercion, ValidationErrorItem
from diagnostics.core.recovery import Recovered, trace
from diagnostics.core.recovery.places import Lines
from plans.core.validation import validate_payload

MAX_PATH = 1000
MAX_MESSAGE = 1000


@dataclass(frozen=True, slots=True)
class Fault:
    """An error of shape before it has a place: a JSON pointer, a code, what was expected."""

    path: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The value as it was taken, every leniency, and every error; none when it is valid."""

    value: Any
    coerced: tuple[Coercion, ...] = ()
    errors: tuple[ValidationErrorItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Judge:
    """How one kind of answer is softened and checked."""

    soften: Callable[[Any], Softer]
    check: Callable[[object], list[Fault]]

    def judge(self, found: Recovered, *, is_lenient: bool = True) -> Judged:
        """Soften (unless told not to) and check a recovered value; never raises."""
        softer = self.soften(found.value) if is_lenient else Softer(found.value)
        faults = self.check(softer.value)[:MAX_ERRORS]
        if not faults and not softer.done:
            return Judged(softer.value)
        place = _Placer(found.text)
        return Judged(
            softer.value,
            tuple(place.coercion(item) for item in softer.done[:MAX_ERRORS]),
            tuple(place.fault(fault, softer.written(fault.path)) for fault in faults),
        )


class _Placer:
    """Finds lines and columns in the text a value was recovered from."""

    def __init__(self, text: str) -> None:
        self._places = trace(text)
        self._lines = Lines(text)

    def coercion(self, item: Softened) -> Coercion:
        offset = self._places.pointed(item.path, key=item.kind == "unknown_key_dropped")
        line, column = self._lines.place(offset)
        return Coercion(path=item.path[:MAX_PATH], kind=item.kind, line=line, column=column)

    def fault(self, fault: Fault, written: str) -> ValidationErrorItem:
        line, column = self._lines.place(self._places.pointed(written))
        return ValidationErrorItem(
            path=fault.path[:MAX_PATH],
            code=fault.code,
            message=fault.message[:MAX_MESSAGE],
            line=line,
            column=column,
        )


def check_plan(value: object) -> list[Fault]:
    """Every violation of the plan contract, none when it is valid."""
    return [Fault(item.path, item.code, item.message) for item in validate_payload(value)]


def check_proposal(value: object) -> list[Fault]:
    """Every violation of `NextStepProposal`, none when it is valid."""
    if not isinstance(value, dict):
        return [Fault("", "object_type", "expected one object with a `kind`, not a list")]
    return [_proposal_fault(fault) for fault in _model_faults(value, PROPOSALS)]


def check_decision(value: object) -> list[Fault]:
    """Every violation of the decision document, none when it is valid."""
    if not isinstance(value, dict):
        return [Fault("", "object_type", "expected one object with a `decision`, not a list")]
    return _model_faults(value, DECISIONS)


def _model_faults(value: object, adapter: TypeAdapter[Any]) -> list[Fault]:
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        return [
            Fault(pointer_of(item["loc"]), item["type"], item["msg"])
            for item in error.errors(include_input=False, include_url=False)
        ]
    return []


def _proposal_fault(fault: Fault) -> Fault:
    if fault.code.startswith("union_tag"):
        kinds = ", ".join(proposals.KINDS)
        return Fault("/kind", fault.code, f"expected `kind` to be one of {kinds}")
    # The first segment is the kind that was chosen, which is no key of the document.
    return Fault(f"/{fault.path.split('/', 2)[2]}", fault.code, fault.message)


PLAN = Judge(soften_plan, check_plan)
NEXT_STEP = Judge(soften_proposal, check_proposal)
DECISION = Judge(soften_decision, check_decision)
