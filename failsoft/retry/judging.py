"""Softening and validation of recovered answers, with located errors."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from failsoft.events import MAX_ERRORS, Coercion, ValidationErrorItem
from failsoft.expectations import expectation
from failsoft.json_values import pointer_of, pointer_parts
from failsoft.parsing import Recovered, TextPlaces
from failsoft.parsing.leniency import UNKNOWN_KEY
from failsoft.plans.shapes import check_keys, explain_unknown_key
from failsoft.plans.validation import TOOL_UNKNOWN, validate_payload
from failsoft.plans.violations import Violation, Violations
from failsoft.retry import proposals
from failsoft.retry.coercion import (
    DECISIONS,
    NEAR_NAME,
    SoftenedValue,
    soften_decision,
    soften_plan,
    soften_proposal,
)
from failsoft.retry.proposals import PROPOSALS

KEY_UNKNOWN = "key_unknown"
_AT_KEYS = frozenset({UNKNOWN_KEY, NEAR_NAME})
# Returns why a tool cannot be called: `tool_unknown` alone, or faults with pointers into its
# arguments.
CallCheck = Callable[[str, Mapping[str, Any]], Sequence[Violation]]


class PlacedCall(NamedTuple):
    tool: str
    args: Mapping[str, Any]
    tool_path: str
    args_path: str


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """The softened value, its coercions and its errors; a valid answer has no errors."""

    value: Any
    coerced: tuple[Coercion, ...] = ()
    errors: tuple[ValidationErrorItem, ...] = ()
    unknown_tools: tuple[str, ...] = ()


def any_call(tool: str, _args: Mapping[str, Any]) -> Sequence[Violation]:
    """Return a violation for what is no name in any registry: brackets or dots around one."""
    is_placeholder = tool[:1] in ("<", "[", "{", "(", ".", "…")
    expected = "expected the name of a tool; this stands for one"
    return (Violation("", TOOL_UNKNOWN, expected),) if is_placeholder else ()


def no_calls(_value: object) -> Iterator[PlacedCall]:
    yield from ()


@dataclass(frozen=True, slots=True)
class AnswerJudge:
    """The softening and the validation of one kind of answer, and the tools that it calls."""

    soften: Callable[[Any], SoftenedValue]
    check: Callable[[object], list[Violation]]
    calls: Callable[[Any], Iterator[PlacedCall]] = no_calls

    def judge(
        self, recovered: Recovered, check_call: CallCheck = any_call, *, is_lenient: bool = True
    ) -> JudgedAnswer:
        """Soften, unless `is_lenient` is False, and validate a recovered value; never raises."""
        softened = self.soften(recovered.value) if is_lenient else SoftenedValue(recovered.value)
        faults, unknown_tools = self.check(softened.value), set()
        for call in self.calls(softened.value):
            for fault in check_call(call.tool, call.args):
                path = call.args_path + fault.path
                if fault.code == TOOL_UNKNOWN:
                    path = call.tool_path
                    unknown_tools.add(call.tool)
                faults.append(Violation(path, fault.code, fault.message))
        if faults and (instead := sent_instead(recovered.value)):
            faults = [Violation("", *instead)]
        if not faults and not softened.done:
            return JudgedAnswer(softened.value)
        errors, coerced = _located(recovered.text, softened, faults)
        return JudgedAnswer(softened.value, coerced, errors, tuple(sorted(unknown_tools)))


def sent_instead(value: object) -> tuple[str, str] | None:
    """Return a code and what was expected for what some models send instead of an answer."""
    match value:
        case {"name": str(), "arguments": dict(), **rest} if not rest:
            return "tool_call", "expected an answer; this is a tool call"
        case {"schema": dict(schema)} | dict(schema) if isinstance(schema.get("properties"), dict):
            if "$schema" in schema or schema.get("type") == "object":
                return "schema_echo", "expected an answer; this is its JSON Schema"
    return None


def _located(
    text: str, softened: SoftenedValue, faults: Sequence[Violation]
) -> tuple[tuple[ValidationErrorItem, ...], tuple[Coercion, ...]]:
    places = TextPlaces(text)
    errors = (
        places.error(
            item.path,
            item.code,
            item.message,
            softened.written(item.path),
            is_key=item.code == KEY_UNKNOWN,
        )
        for item in faults[:MAX_ERRORS]
    )
    coerced = (
        places.coercion(item.path, item.kind, is_key=item.kind in _AT_KEYS)
        for item in softened.done[:MAX_ERRORS]
    )
    return tuple(errors), tuple(coerced)


def check_plan(value: object) -> list[Violation]:
    """Return the violations of the contract by a plan, its unknown keys included."""
    unknown_keys = Violations()
    check_keys(value, unknown_keys)
    return [*validate_payload(value), *unknown_keys]


def check_proposal(value: object) -> list[Violation]:
    return [_proposal_fault(fault, value) for fault in _model_faults(value, PROPOSALS, "kind")]


def check_decision(value: object) -> list[Violation]:
    return _model_faults(value, DECISIONS, "decision")


def _model_faults(value: object, adapter: TypeAdapter[Any], key: str) -> list[Violation]:
    if not isinstance(value, dict):
        return [Violation("", "object_type", f"expected one object with a `{key}`, not a list")]
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        return [
            Violation(pointer_of(item["loc"]), item["type"], expectation(item))
            for item in error.errors(include_input=False, include_url=False)
        ]
    return []


def _proposal_fault(fault: Violation, value: Any) -> Violation:  # noqa: ANN401 - any JSON
    if fault.code.startswith("union_tag"):
        kinds = ", ".join(proposals.KINDS)
        return Violation("/kind", fault.code, f"expected `kind` to be one of {kinds}")
    # The first segment is the variant of the union, which is not a key of the document.
    path = f"/{fault.path.split('/', 2)[2]}" if fault.path else ""
    if fault.code == "extra_forbidden":
        known_keys = proposals.KINDS[value["kind"]].model_fields
        message = explain_unknown_key(pointer_parts(path)[0], known_keys)
        return Violation(path, KEY_UNKNOWN, message)
    return Violation(path, fault.code, fault.message)


def plan_calls(plan: Any) -> Iterator[PlacedCall]:  # noqa: ANN401 - any JSON
    """Yield the calls of the steps that have a tool and arguments, in a valid plan of all."""
    steps = plan.get("steps") if isinstance(plan, dict) else None
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        path = f"/steps/{index}"
        match step:
            case {"tool": {"name": str(name)} as tool}:
                call = PlacedCall(name, tool.get("args", {}), f"{path}/tool", f"{path}/tool/args")
            case {"tool": str(name)}:
                call = PlacedCall(name, step.get("args", {}), f"{path}/tool", f"{path}/args")
            case _:
                continue
        if isinstance(call.args, dict):
            yield call


def proposal_calls(proposal: Any) -> Iterator[PlacedCall]:  # noqa: ANN401 - any JSON
    match proposal:
        case {"kind": "call_tool", "tool": str(tool)}:
            args = proposal.get("args", {})
            if isinstance(args, dict):
                yield PlacedCall(tool, args, "/tool", "/args")


PLAN = AnswerJudge(soften_plan, check_plan, plan_calls)
NEXT_STEP = AnswerJudge(soften_proposal, check_proposal, proposal_calls)
DECISION = AnswerJudge(soften_decision, check_decision)
