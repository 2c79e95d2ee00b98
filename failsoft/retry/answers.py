"""Parsing of model text into a valid proposal, plan or list of calls, or located errors."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter, ValidationError

from failsoft.events import MAX_ERRORS, Coercion, ParseErrorType, Repair, ValidationErrorItem
from failsoft.json_values import pointer_of, pointer_parts
from failsoft.parsing import Recovered, RefusedAnswer, TextPlaces, recover
from failsoft.parsing.leniency import UNKNOWN_KEY
from failsoft.plans.validation import validate_payload
from failsoft.plans.violations import Violation
from failsoft.retry import proposals
from failsoft.retry.coercion import (
    DECISIONS,
    SoftenedValue,
    soften_decision,
    soften_plan,
    soften_proposal,
)
from failsoft.retry.proposals import PROPOSALS

MAX_MESSAGE = 1000


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """The softened value, its coercions and its errors; a valid answer has no errors."""

    value: Any
    coerced: tuple[Coercion, ...] = ()
    errors: tuple[ValidationErrorItem, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerJudge:
    """The softening and the validation of one kind of answer."""

    soften: Callable[[Any], SoftenedValue]
    check: Callable[[object], list[Violation]]

    def judge(self, recovered: Recovered, *, is_lenient: bool = True) -> JudgedAnswer:
        """Soften, unless `is_lenient` is False, and validate a recovered value; never raises."""
        softened = self.soften(recovered.value) if is_lenient else SoftenedValue(recovered.value)
        faults = self.check(softened.value)[:MAX_ERRORS]
        if not faults and not softened.done:
            return JudgedAnswer(softened.value)
        places = TextPlaces(recovered.text)
        coerced = [
            places.coercion(item.path, item.kind, is_key=item.kind == UNKNOWN_KEY)
            for item in softened.done[:MAX_ERRORS]
        ]
        errors = [
            places.error(
                item.path, item.code, item.message[:MAX_MESSAGE], softened.written(item.path)
            )
            for item in faults
        ]
        return JudgedAnswer(softened.value, tuple(coerced), tuple(errors))


def check_proposal(value: object) -> list[Violation]:
    """Return the violations of `NextStepProposal`."""
    return [_proposal_fault(fault) for fault in _model_faults(value, PROPOSALS, "kind")]


def check_decision(value: object) -> list[Violation]:
    """Return the violations of the decision document."""
    return _model_faults(value, DECISIONS, "decision")


def _model_faults(value: object, adapter: TypeAdapter[Any], key: str) -> list[Violation]:
    if not isinstance(value, dict):
        return [Violation("", "object_type", f"expected one object with a `{key}`, not a list")]
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        return [
            Violation(pointer_of(item["loc"]), item["type"], item["msg"])
            for item in error.errors(include_input=False, include_url=False)
        ]
    return []


def _proposal_fault(fault: Violation) -> Violation:
    if fault.code.startswith("union_tag"):
        kinds = ", ".join(proposals.KINDS)
        return Violation("/kind", fault.code, f"expected `kind` to be one of {kinds}")
    # The first segment is the variant of the union, which is not a key of the document.
    path = f"/{fault.path.split('/', 2)[2]}" if fault.path else ""
    return Violation(path, fault.code, fault.message)


PLAN = AnswerJudge(soften_plan, validate_payload)
NEXT_STEP = AnswerJudge(soften_proposal, check_proposal)
DECISION = AnswerJudge(soften_decision, check_decision)


class PlannerSchema(StrEnum):
    """The kinds of answers of a planner; the values are the documented schema names."""

    NEXT_STEP = proposals.SCHEMA_NAME
    PLAN = "PlanPayload"
    # Native tool calls, which are not parsed from text.
    ACTIONS = "ToolCalls"


# Answers that are parsed from text.
WRITTEN = (PlannerSchema.NEXT_STEP, PlannerSchema.PLAN)


@dataclass(frozen=True, slots=True)
class Understood:
    """A valid answer; `value` is JSON-shaped, for a plan the payload, for a step the proposal."""

    value: dict[str, Any]
    repairs: tuple[Repair, ...] = ()
    coerced: tuple[Coercion, ...] = ()


@dataclass(frozen=True, slots=True)
class Misunderstood:
    """An invalid answer with at least one located error."""

    error_type: ParseErrorType
    errors: tuple[ValidationErrorItem, ...]
    repairs: tuple[Repair, ...] = ()
    coerced: tuple[Coercion, ...] = ()


def interpret(
    text: str, finish_reason: str | None, schema: PlannerSchema
) -> Understood | Misunderstood:
    """Parse, soften and validate an answer; never raises, for any text."""
    outcome = recover(text, finish_reason)
    if isinstance(outcome, RefusedAnswer):
        return Misunderstood(outcome.error_type, (outcome.reason,))
    judged = _JUDGES[schema].judge(outcome)
    if judged.errors:
        return Misunderstood(
            ParseErrorType.SCHEMA_INVALID, judged.errors, outcome.repairs, judged.coerced
        )
    return Understood(judged.value, outcome.repairs, judged.coerced)


@dataclass(frozen=True, slots=True)
class Reread:
    """A softened answer, valid or not, and the keys that were dropped."""

    value: Any
    dropped: tuple[str, ...] = ()


def reread(text: str, schema: PlannerSchema) -> Reread:
    """Parse and soften an answer without validation; its value is None when unreadable."""
    judge = _JUDGES.get(schema)
    outcome = recover(text)
    if judge is None or isinstance(outcome, RefusedAnswer):
        return Reread(None)
    softened = judge.soften(outcome.value)
    dropped = (item.path for item in softened.done if item.kind == UNKNOWN_KEY)
    return Reread(softened.value, tuple(dropped))


def unknown_tools(
    value: dict[str, Any], schema: PlannerSchema, registered: Collection[str]
) -> list[str]:
    """Return the tools of a valid answer that are not registered: not a parse failure."""
    if schema is PlannerSchema.NEXT_STEP:
        names = [value["tool"]] if value["kind"] == "call_tool" else []
    else:
        tools = [step["tool"] for step in value["steps"]]
        names = [tool if isinstance(tool, str) else tool["name"] for tool in tools]
    return sorted({name for name in names if name not in registered})


_JUDGES = {PlannerSchema.NEXT_STEP: NEXT_STEP, PlannerSchema.PLAN: PLAN}


class AnswerSchema(StrEnum):
    """The schemas for `parse_answer`; `none` accepts any object or array."""

    PLAN = "plan"
    NEXT_STEP = "next_step"
    DECISION = "decision"
    NONE = "none"


_ANSWER_JUDGES: dict[AnswerSchema, AnswerJudge] = {
    AnswerSchema.PLAN: PLAN,
    AnswerSchema.NEXT_STEP: NEXT_STEP,
    AnswerSchema.DECISION: DECISION,
}


def parse_answer(
    text: str, schema: AnswerSchema = AnswerSchema.NONE, finish_reason: str | None = None
) -> dict[str, Any]:
    """Parse an answer and return the outcome; never raises.

    Returns `ok`, `value` (null unless ok), `repairs`, `coerced` and `error` (null when ok) with
    the keys type, line, column (1-based) and message.
    """
    outcome = recover(text, finish_reason)
    if isinstance(outcome, RefusedAnswer):
        error = _error(outcome.error_type, outcome.line, outcome.column, outcome.message)
        return {"ok": False, "value": None, "repairs": [], "coerced": [], "error": error}
    judge = _ANSWER_JUDGES.get(schema)
    judged = judge.judge(outcome) if judge is not None else JudgedAnswer(outcome.value)
    return {
        "ok": not judged.errors,
        "value": None if judged.errors else judged.value,
        "repairs": [item.model_dump() for item in outcome.repairs],
        "coerced": [item.model_dump() for item in judged.coerced],
        "error": _schema_error(judged.errors) if judged.errors else None,
    }


def _schema_error(errors: tuple[ValidationErrorItem, ...]) -> dict[str, Any]:
    first = errors[0]
    messages = "; ".join(f"{dotted(item.path or '')}: {item.message}" for item in errors[:5])
    more = f"; and {len(errors) - 5} more" if len(errors) > 5 else ""
    message = f"line {first.line}, column {first.column}: {messages}{more}"
    return _error(ParseErrorType.SCHEMA_INVALID, first.line, first.column, message)


def dotted(pointer: str) -> str:
    """Return a JSON pointer in dotted notation: `steps[1].tool`."""
    path = ""
    for name in pointer_parts(pointer):
        path += f"[{name}]" if name.isdecimal() else f".{name}" if path else name
    return path or "the answer"


def _error(
    error_type: ParseErrorType, line: int | None, column: int | None, message: str
) -> dict[str, Any]:
    return {"type": error_type.value, "line": line, "column": column, "message": message}
