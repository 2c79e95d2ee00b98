"""Steps of a run as pages show them: lines of a table, boxes of a drawing, one in full."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from agents.core.badges import Badge, step_badge
from diagnostics.core.charts.plan_graph import GraphStep
from plans.core.tracing import StepTrace
from plans.models import RunStep

OUTPUT_SHOWN = 2_000
SHORT_OUTPUT = 90


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step with its badge and its output as text."""

    step: RunStep
    badge: Badge
    output: str
    is_short: bool
    took: timedelta | None
    root: StepTrace | None = None
    is_critical: bool = False


def step_row(step: RunStep, root: StepTrace | None = None, *, is_critical: bool = False) -> StepRow:
    """Prepare a step; `root` is the step that brought it down, if another one did."""
    output = shown_json(step.output)
    return StepRow(
        step=step,
        badge=step_badge(step.state, ok=step.ok, skipped=step.skipped),
        output=output,
        is_short=len(output) <= SHORT_OUTPUT and "\n" not in output,
        took=step.ended_at - step.started_at if step.started_at and step.ended_at else None,
        root=root,
        is_critical=is_critical,
    )


def graph_step(
    step: RunStep,
    roots: Mapping[int, int] | None = None,
    critical: frozenset[int] = frozenset(),
    url: str = "",
) -> GraphStep:
    """Prepare a step for the drawing."""
    tone, word = step_badge(step.state, ok=step.ok, skipped=step.skipped)
    return GraphStep(
        step_id=step.step_id,
        title=step.title,
        tool=step.tool or "",
        state=word,
        tone=tone,
        dependencies=tuple(step.dependencies),
        is_root=(roots or {}).get(step.position) == step.position,
        is_critical=step.position in critical,
        url=url,
    )


def shown_json(value: object, most: int = OUTPUT_SHOWN) -> str:
    """Write a JSON value for reading: on one line when it is short."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) > SHORT_OUTPUT and not isinstance(value, str):
        text = json.dumps(value, indent=2, ensure_ascii=False)
    return text if len(text) <= most else text[:most] + "…"
