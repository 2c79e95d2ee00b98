"""What a runner reads before it begins: the plan, and what its rows say already."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from diagnostics.core.cleaning import clean_text
from diagnostics.redaction.redacting import redact
from plans.core.resolution import ResolvedPlan, resolve_plan
from plans.models import Run, RunStep


class StepRow(NamedTuple):
    """The columns of a step that a runner needs before it begins."""

    position: int
    state: str
    starts: int
    call_group: int
    step_id: str
    title: str
    tool: str | None


def read_rows(run: Run) -> list[StepRow]:
    """Return the rows of a run's steps in payload order."""
    rows = run.steps.order_by("position").values_list(*StepRow._fields)
    return [StepRow(*row) for row in rows]


def read_plan(payload: object, rows: Sequence[StepRow]) -> ResolvedPlan:
    """Resolve a payload; names are shown as they were redacted when it was submitted."""
    return resolve_plan(payload, _shown_names(payload, rows))


def _shown_names(payload: object, rows: Sequence[StepRow]) -> Callable[[str], str]:
    steps = payload.get("steps") if isinstance(payload, dict) else None
    shown: dict[str, str] = {}
    for step, row in zip(steps if isinstance(steps, list) else [], rows, strict=False):
        if isinstance(step, dict):
            _note(shown, step.get("step_id"), row.step_id)
            _note(shown, step.get("title"), row.title)
            tool = step.get("tool")
            name = tool.get("name") if isinstance(tool, dict) else tool
            _note(shown, name, row.tool)

    def show(text: str) -> str:
        known = shown.get(text)
        return redact(text) if known is None else known

    return show


def _note(shown: dict[str, str], raw: Any, text: str | None) -> None:  # noqa: ANN401 - as a model wrote it
    # Without an id a row shows its place: that is no other text of this one.
    if isinstance(raw, str) and raw not in shown and raw.strip() and text:
        shown.setdefault(clean_text(raw), text)


def final_steps(run: Run) -> list[RunStep]:
    """Return the rows that have a result."""
    return list(run.steps.filter(state=RunStep.State.FINAL))
