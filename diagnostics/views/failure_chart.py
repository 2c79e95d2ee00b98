"""The trend of a kind of failure: its share of the calls, with what changed on the axis."""

from collections.abc import Sequence

from diagnostics.core.charts.series import SeriesChart, Since
from diagnostics.core.query_language import Term
from diagnostics.groups.shares import Curve
from diagnostics.queries.marks import marks_between


def chart_of(
    project_id: int, curve: Curve, terms: Sequence[Term], query: str
) -> SeriesChart | None:
    """Give the chart of a curve; None where calls are not counted."""
    if not any(bucket.runs for bucket in curve.buckets):
        return None
    marks = marks_between(project_id, curve.since, curve.until, terms)
    begun = curve.began_at
    return SeriesChart(
        name="failure",
        title="Share of calls that fail so, over time",
        since=curve.since,
        width=curve.width,
        slots=curve.buckets,
        failing="failing",
        baseline=curve.usual,
        onset=Since(begun, begun, begun + curve.width) if begun else None,
        marks=marks,
        query=query,
    )
