"""The trend of a kind of failure, with what changed drawn on its axis of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from diagnostics.core.charts.trend import Trend, trend
from diagnostics.core.marks import Mark
from diagnostics.core.query_language import Term
from diagnostics.group_shares import Curve
from diagnostics.marks import marks_between


@dataclass(frozen=True, slots=True)
class TrendChart:
    """The drawing, and what its marks stand for."""

    drawn: Trend
    marks: Sequence[Mark]
    times: Sequence[datetime]


def chart_of(project_id: int, curve: Curve, terms: Sequence[Term]) -> TrendChart:
    """Draw failures over time, hot since the onset, with deploys as lines."""
    marks = marks_between(project_id, curve.since, curve.until, terms)
    drawn = trend(
        [bucket.degraded for bucket in curve.buckets],
        [bucket.runs for bucket in curve.buckets],
        [(mark.at - curve.since) / (curve.until - curve.since) for mark in marks],
        curve.begun,
    )
    times = [curve.since + part * (curve.until - curve.since) / 4 for part in range(5)]
    return TrendChart(drawn, marks, times)
