"""Failure groups against the calls they are of."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.failures.counts import GroupQuestion, read_question
from diagnostics.failures.models import FailureGroup
from diagnostics.failures.shares import Denominator, calls_by_node, curve_of, places_of
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import read_selection
from tests.console import post_and_fold
from tests.diagnostics.builders import succeeded, wire_event

pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> datetime:
    return clock.now()


def calls(at: datetime, good: int, bad: int, **changes: Any) -> list[dict[str, Any]]:
    said = {"occurred_at": at.isoformat(), **changes}
    fine = [succeeded(correlation_id=f"{at}{k}", **said) for k in range(good)]
    return [*fine, *(wire_event(**said) for _ in range(bad))]


@pytest.fixture
def group(project: Project, now: datetime) -> FailureGroup:
    """Two calm days, then three hours in which half of the calls fail."""
    events = [
        event
        for hour in range(4, 48)
        for event in calls(now - timedelta(hours=hour), 3, hour % 20 == 0)
    ]
    late = [
        event
        for hour in range(3)
        for event in calls(now - timedelta(hours=hour, minutes=1), 5, 5, model="x")
    ]
    post_and_fold(project, *events, *late)
    return FailureGroup.objects.get(project=project)


def of_a_day(now: datetime, *terms: Term) -> GroupQuestion:
    return GroupQuestion(now - timedelta(hours=24), now, terms)


def test_the_curve_has_calls_failures_what_is_usual_and_the_onset(
    project: Project, group: FailureGroup, now: datetime
) -> None:
    curve = curve_of(project.pk, group, of_a_day(now))
    assert sum(curve.counts) == 16
    assert curve.width == timedelta(hours=1)
    assert curve.usual is not None
    share, low, high = curve.usual
    assert low < share < high < 0.1
    began = curve.began_at
    assert began is not None
    assert abs(began - (now - timedelta(hours=3))) <= timedelta(hours=1)


def test_long_ranges_are_divided_into_few_stretches(
    project: Project, group: FailureGroup, now: datetime
) -> None:
    asked = GroupQuestion(now - timedelta(days=90), now)
    curve = curve_of(project.pk, group, asked)
    assert len(curve.buckets) <= 48
    assert sum(curve.counts) == 17
    assert curve.until >= now


def test_calls_of_other_nodes_are_not_its_calls(
    project: Project, group: FailureGroup, now: datetime
) -> None:
    other = calls(now, 9, 0, name="graph.plan.succeeded")
    post_and_fold(project, *other)
    asked = of_a_day(now, Term("node", "plan"), Term("model", "x"))
    (model, *_) = places_of(project.pk, group, asked)
    assert [(row.calls, row.failures) for row in model.rows] == [(30, 0)]
    assert calls_by_node(project.pk, of_a_day(now))["plan"] == Denominator(9, "call")


def test_single_events_have_no_calls_beside_them(
    project: Project, group: FailureGroup, now: datetime
) -> None:
    asked, _ = read_question(read_selection({"attempt": "1"}), now)
    assert calls_by_node(project.pk, asked) == {}
    curve = curve_of(project.pk, group, asked)
    assert (sum(curve.counts), curve.begun, curve.usual) == (16, None, None)
    assert not any(bucket.runs for bucket in curve.buckets)
    model = next(one for one in places_of(project.pk, group, asked) if one.name == "model")
    assert [(row.values["model"], row.lift) for row in model.rows] == [
        ("x", None),
        ("fake-1", None),
    ]
