"""The data that a runner reads first: the plan and the rows of its steps."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple
from uuid import UUID

from diagnostics.redaction.redactor import redact
from failsoft.json_values import clean_text
from failsoft.plans.resolution import ResolvedPlan, resolve_plan
from plans.models.run import Run
from plans.runs import working_store


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
    """Return the plan of a payload, its names redacted as at submission."""
    return resolve_plan(payload, _shown_names(payload, rows))


def _shown_names(payload: object, rows: Sequence[StepRow]) -> Callable[[str], str]:
    steps = payload.get("steps") if isinstance(payload, dict) else None
    shown_names: dict[str, str] = {}
    for step, row in zip(steps if isinstance(steps, list) else [], rows, strict=False):
        if isinstance(step, dict):
            _note(shown_names, step.get("step_id"), row.step_id)
            _note(shown_names, step.get("title"), row.title)
            tool = step.get("tool")
            name = tool.get("name") if isinstance(tool, dict) else tool
            _note(shown_names, name, row.tool)

    def show(text: str) -> str:
        shown = shown_names.get(text)
        return redact(text) if shown is None else shown

    return show


def _note(shown_names: dict[str, str], raw: Any, text: str | None) -> None:  # noqa: ANN401 - as the model wrote it
    # The row of a step without an id shows its position, which is not the redacted id.
    if isinstance(raw, str) and raw not in shown_names and raw.strip() and text:
        shown_names.setdefault(clean_text(raw), text)


_MOST_PLANS = 4


_lock = Lock()
_plans: OrderedDict[UUID, ResolvedPlan] = OrderedDict()


def plan_of(run: Run, payload: object = None) -> ResolvedPlan:
    """Return the plan of a run; WorkingItemMissingError when its payload is gone."""
    with _lock:
        cached = _plans.get(run.pk)
        if cached is not None:
            _plans.move_to_end(run.pk)
            return cached
    if payload is None:
        payload = working_store.get(run, "payload")
    plan = read_plan(payload, read_rows(run))
    with _lock:
        _plans[run.pk] = plan
        while len(_plans) > _MOST_PLANS:
            _plans.popitem(last=False)
    return plan


def forget(run_id: UUID) -> None:
    """Drop the cached plan of a run that has ended: it holds raw arguments."""
    with _lock:
        _plans.pop(run_id, None)
