"""Recent use of tools by plan runs: calls, failures, durations."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Aggregate, Count, DurationField, F, Max, Q

from plans.models.run import Run, RunStep

LATEST_RUNS = 500
"""The number of plan runs whose steps are counted; it bounds the cost of the page."""
MOST_TOOLS = 200


class DurationP95(Aggregate):
    """The 95th percentile of durations."""

    template = "percentile_cont(0.95) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DurationField()


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The calls of one tool; `p95` is None while none has ended."""

    name: str
    calls: int
    failed: int
    p95: timedelta | None
    last_at: datetime


def tool_use(project_id: int) -> Sequence[ToolUse]:
    """Return the tools that the latest plan runs called, by failed calls, then by calls."""
    latest = Run.objects.filter(project=project_id).order_by("-id").values("id")[:LATEST_RUNS]
    called_steps = RunStep.objects.filter(run__in=latest, started_at__isnull=False)
    rows = (
        called_steps.exclude(tool=None)
        .order_by()
        .values(name=F("tool"))
        .annotate(
            calls=Count("id"),
            failed=Count("id", filter=Q(ok=False)),
            p95=DurationP95(F("ended_at") - F("started_at")),
            last_at=Max("started_at"),
        )
    )
    return [ToolUse(**row) for row in rows.order_by("-failed", "-calls", "name")[:MOST_TOOLS]]
