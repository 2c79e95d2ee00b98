"""The executor: one pure step function and a driver around it.

Every runner calls `run_step` for each step whose dependencies have results, and `summarise` at
the end; all side effects go through `Seams`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import JsonValue

from failsoft.json_values import clean_text
from failsoft.plans.contract import DEGRADED, MAX_ERROR_CHARACTERS, StepResult
from failsoft.plans.ordering import UnresolvedReferenceError, resolve_references
from failsoft.plans.outputs import UnusableOutputError, fit_output, make_json
from failsoft.plans.resolution import PlannedStep, ResolvedPlan, resolve_plan
from failsoft.plans.summary import Progress, summarise
from failsoft.plans.violations import quote


class ToolNotFoundError(Exception):
    """No tool of this name is registered."""


class ToolArgumentsError(Exception):
    """The arguments do not match the schema of the tool; the message says where."""


class ToolTimeoutError(Exception):
    """The tool did not answer within its time limit."""


class ToolRefusedError(Exception):
    """The call failed with a specific reason, such as `tool_busy`; the text says why."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class CallContext(NamedTuple):
    """The context of a tool call.

    `idempotency_key` is `run:step:group`: the same for every attempt of one call, so that a
    receiver can ignore repeats. `attempt` counts from 1. `is_cancelled()` is cheap; a slow
    tool should poll it and stop when it is true. Outside of a stored run the ids are empty.
    """

    idempotency_key: str = ""
    run_id: str = ""
    step_id: str = ""
    project_id: int | None = None
    attempt: int = 1
    is_cancelled: Callable[[], bool] = lambda: False


CallTool = Callable[[str, dict[str, JsonValue], CallContext], object]


@dataclass(frozen=True, slots=True)
class Seams:
    """The side effects of the executor.

    `call_tool(name, args, context)` returns the output or raises; ToolNotFoundError,
    ToolArgumentsError, ToolTimeoutError and ToolRefusedError have specific reasons.
    `stop()` is called before each tool call and returns why no further tool may be called
    (`cancelled`, `deadline_reached`, `budget_reached`) or None. `redact` and `redact_json`
    are applied to every text and value in a result. `context_of(step)` returns the context
    of a call. With `strict_degraded` a step whose dependency is degraded is skipped.
    `begin(step)` is called immediately before a tool call, and may prevent it like `stop`.
    """

    call_tool: CallTool
    stop: Callable[[], str | None] = lambda: None
    redact: Callable[[str], str] = str
    redact_json: Callable[[JsonValue], JsonValue] = lambda value: value
    context_of: Callable[[PlannedStep], CallContext] = lambda step: CallContext(
        step_id=step.step_id
    )
    strict_degraded: bool = False
    begin: Callable[[PlannedStep], str | None] = lambda step: None


class Executed(NamedTuple):
    """The result of a step, for display, and its raw output, for references only."""

    result: StepResult
    raw_output: JsonValue = None


def execute(payload: object, seams: Seams) -> list[dict[str, Any]]:
    """Run a plan in this process and return its rows in payload order, `__meta__` last.

    The payload may be invalid: no step is dropped and nothing in it raises.
    """
    plan = resolve_plan(payload, seams.redact)
    progress = Progress()
    outputs: dict[int, JsonValue] = {}
    for index in plan.order:
        executed = run_step(plan, index, progress, outputs, seams)
        progress.record(plan, index, executed.result)
        if index in plan.referenced:
            outputs[index] = executed.raw_output
    return [*collect_rows(plan, progress), summarise(plan, progress).as_row()]


def collect_rows(plan: ResolvedPlan, progress: Progress) -> list[dict[str, Any]]:
    """Return the rows of a plan's steps in payload order, without `__meta__`."""
    return [progress.results[step.index].as_row() for step in plan.steps]


def run_step(
    plan: ResolvedPlan,
    index: int,
    progress: Progress,
    outputs: Mapping[int, JsonValue],
    seams: Seams,
) -> Executed:
    """Run one step, or skip it with a reason; never raises, for any step.

    `progress` has the results of its dependencies, `outputs` their raw outputs.
    """
    result = settle_step(plan, index, progress, seams)
    if result is not None:
        return Executed(result)
    step = plan.steps[index]
    skip_reason = seams.begin(step)
    if skip_reason is not None:
        return Executed(_skip(step, skip_reason))
    try:
        args = _fill_in(plan, step, outputs)
        raw = make_json(seams.call_tool(step.call, args, seams.context_of(step)))
        # An empty output needs no redaction.
        output = fit_output(seams.redact_json(raw)) if raw else raw
        reason = DEGRADED if isinstance(raw, dict) and raw.get("degraded") is True else None
        result = StepResult(step.step_id, step.tool, ok=True, reason=reason, output=output)
        return Executed(result, raw)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - no error of a tool stops the plan
        reason, text = _explain_failure(step, error)
        return Executed(_fail(step, reason, _bound(seams.redact(clean_text(text)))))


def settle_step(
    plan: ResolvedPlan, index: int, progress: Progress, seams: Seams
) -> StepResult | None:
    """Return the result of a step whose tool must not be called, or None."""
    step = plan.steps[index]
    if step.defect is not None:
        return _fail(step, step.defect.reason, step.defect.error)
    blocker = progress.blocker_of(plan, index)
    if blocker is not None:
        return _skip(step, _explain_skip(plan, progress, blocker))
    if seams.strict_degraded:
        degraded = progress.degraded_dependency_of(plan, index)
        if degraded is not None:
            name = quote(plan.steps[degraded].step_id)
            return _skip(step, f"dependency_degraded: {name}")
    stopped = seams.stop()
    return None if stopped is None else _skip(step, stopped)


def _fill_in(
    plan: ResolvedPlan, step: PlannedStep, outputs: Mapping[int, JsonValue]
) -> dict[str, JsonValue]:
    """Return the arguments with references resolved, within the bounds of any value.

    A few references to large outputs could otherwise exhaust the memory.
    """
    args: JsonValue = step.args
    if not args:
        return {}
    if step.has_dollar:
        args = resolve_references(args, lambda name: _output_of(plan, name, outputs))
    try:
        bounded = make_json(args)
    except UnusableOutputError as error:
        raise ToolArgumentsError(f"The arguments are out of bounds: {error}.") from None
    return bounded if isinstance(bounded, dict) else {}


def _output_of(plan: ResolvedPlan, step_id: str, outputs: Mapping[int, JsonValue]) -> JsonValue:
    index = plan.index_of.get(step_id)
    if index is None or index not in outputs:
        problem = "which no step declares" if index is None else "which has no output yet"
        raise UnresolvedReferenceError(f"The arguments refer to {quote(step_id)}, {problem}.")
    return outputs[index]


_REASONS: dict[type[Exception], str] = {
    ToolArgumentsError: "invalid_arguments",
    ToolTimeoutError: "tool_timeout",
    UnresolvedReferenceError: "unresolved_reference",
}


def _explain_failure(step: PlannedStep, error: BaseException) -> tuple[str, str]:
    if isinstance(error, ToolNotFoundError):
        return "tool_not_found", f"Tool {quote(step.call)} is not registered."
    for kind, reason in _REASONS.items():
        if isinstance(error, kind):
            return reason, _text_of(error)
    if isinstance(error, ToolRefusedError):
        return error.reason, _text_of(error)
    if isinstance(error, UnusableOutputError):
        return (
            "unusable_output",
            f"Tool {quote(step.call)} returned what cannot be stored: {error}.",
        )
    return "tool_failed", f"{type(error).__name__}: {_text_of(error)}"


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - `__str__` of an exception may raise
        return "(the exception has no text)"


def _bound(text: str) -> str:
    return text if len(text) <= MAX_ERROR_CHARACTERS else f"{text[:MAX_ERROR_CHARACTERS]}..."


def _explain_skip(plan: ResolvedPlan, progress: Progress, blocker: int) -> str:
    root = progress.roots[blocker]
    name = quote(plan.steps[blocker].step_id)
    code = progress.results[root].reason_code
    if not progress.results[blocker].skipped:
        return f"dependency_failed: {name} ({code})"
    cause = quote(plan.steps[root].step_id)
    return f"dependency_skipped: {name}; root cause {cause} ({code})"


def _fail(step: PlannedStep, reason: str, error: str) -> StepResult:
    return StepResult(
        step_id=step.step_id, tool=step.tool, ok=False, reason=reason, error=_bound(error)
    )


def _skip(step: PlannedStep, reason: str) -> StepResult:
    return StepResult(step_id=step.step_id, tool=step.tool, ok=False, skipped=True, reason=reason)


def count_awaited(plan: ResolvedPlan, final: Collection[int]) -> dict[int, int]:
    """Return the number of open dependencies of each step without a result."""
    return {
        step.index: sum(dependency not in final for dependency in step.awaited)
        for step in plan.steps
        if step.index not in final
    }
