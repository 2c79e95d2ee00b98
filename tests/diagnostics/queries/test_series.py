"""Curves read rollups and what is not folded yet, and mean the same either way."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.analysis.series import SeriesKey
from diagnostics.queries.series import counts_by_series, latest_events, trends
from diagnostics.queries.sums import Question, Slots, sum_rollups
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import Selection
from diagnostics.store import aggregation
from diagnostics.store.windows import Grain, align, align_to
from failsoft.events import EventKind
from tests.console import post_events
from tests.diagnostics.builders import degraded, succeeded, wire_event

pytestmark = pytest.mark.django_db
KEY = SeriesKey(None, "next_step", "fake", "fake-1")
HOUR = timedelta(hours=1)


@pytest.fixture
def now() -> datetime:
    return clock.now()


@pytest.fixture(params=[False, True], ids=["deltas", "folded"])
def settle(request: pytest.FixtureRequest) -> Any:
    """Read once from deltas and once from rollups."""
    return aggregation.fold if request.param else lambda: None


def test_a_curve_tells_runs_and_degraded_by_bucket(
    project: Project, now: datetime, settle: Any
) -> None:
    since = now - 24 * HOUR
    early, late = since + timedelta(minutes=20), now - timedelta(minutes=1)
    post_events(
        project,
        succeeded(occurred_at=early.isoformat()),
        degraded(occurred_at=late.isoformat()),
        succeeded(occurred_at=late.isoformat(), attempt=2),
        wire_event(occurred_at=late.isoformat()),
    )
    settle()
    curve = trends(project.pk, since, now, 96)[KEY]
    assert len(curve) == 96
    assert sum(bucket.runs for bucket in curve) == 3
    assert sum(bucket.runs for bucket in curve[:3]) == 1
    assert (curve[-1].runs, curve[-1].degraded) == (2, 1)


def test_terms_narrow_series_and_versions_alike(
    project: Project, now: datetime, settle: Any
) -> None:
    at = (now - HOUR / 2).isoformat()
    post_events(
        project,
        succeeded(occurred_at=at, model="Claude-Haiku", prompt_version="v1"),
        succeeded(occurred_at=at, model="gpt", prompt_version="v2"),
        succeeded(occurred_at=at, model=None, prompt_version=None),
    )
    settle()

    def models(*terms: Term) -> set[str | None]:
        window = align(now - 6 * HOUR, now, now, Grain.HOUR)
        return {key.model for key in counts_by_series(project.pk, window, terms)}

    assert models() == {"Claude-Haiku", "gpt", None}
    assert models(Term("model", "haiku", is_exact=False)) == {"Claude-Haiku"}
    assert models(Term("model", "gpt", is_negated=True)) == {"Claude-Haiku", None}
    assert models(Term("model", None)) == {None}
    assert models(Term("prompt_version", "v2")) == {"gpt"}
    assert models(Term("prompt_version", "v1"), Term("prompt_version", None)) == {
        "Claude-Haiku",
        None,
    }
    assert models(Term("prompt_version", "v1"), Term("model", "gpt")) == set()
    curve = trends(project.pk, now - 24 * HOUR, now, 96, [Term("prompt_version", "v2")])
    assert {key.model for key in curve} == {"gpt"}


def test_sums_by_version_tell_kinds_of_failure_of_each(
    project: Project, now: datetime, settle: Any
) -> None:
    at = now.isoformat()
    post_events(
        project,
        wire_event(occurred_at=at, parse_error_type="refusal", prompt_version="v1"),
        wire_event(occurred_at=at, parse_error_type="refusal", prompt_version="v2"),
        wire_event(occurred_at=at, parse_error_type="not_json", prompt_version="v2"),
    )
    settle()
    window = align_to(Grain.HOUR, now - HOUR, now + HOUR)
    asked = Question(window, ("prompt_version",), ("refusal", "not_json"))
    assert sorted(sum_rollups(project.pk, asked)) == [("v1", 1, 0), ("v2", 1, 1)]


def test_sums_meet_terms_on_what_they_do_not_tell_apart(
    project: Project, now: datetime, settle: Any
) -> None:
    at = now.isoformat()
    for model, version in (("a", "v1"), ("a", "v2"), ("b", "v1"), ("b", None)):
        post_events(project, succeeded(occurred_at=at, model=model, prompt_version=version))
    settle()
    window = align_to(Grain.HOUR, now - HOUR, now + HOUR)

    def told(dimension: str, *terms: Term) -> list[Any]:
        asked = Question(window, (dimension,), ("runs",), terms)
        return sorted(sum_rollups(project.pk, asked))

    first, other = Term("prompt_version", "v1"), Term("model", "a", is_negated=True)
    assert told("model", first) == [("a", 1), ("b", 1)]
    assert told("prompt_version", Term("model", "a")) == [("v1", 1), ("v2", 1)]
    assert told("node", first, other) == [("next_step", 1)]
    assert told("source", first) == [(None, 2)]


def test_what_lies_beyond_the_slots_counts_in_the_nearest(
    project: Project, now: datetime, settle: Any
) -> None:
    window = align_to(Grain.HOUR, now - 5 * HOUR, now)
    for hour in range(5):
        at = window.since + hour * HOUR + timedelta(minutes=1)
        post_events(project, succeeded(occurred_at=at.isoformat()))
    settle()
    slots = Slots(window.since + HOUR, HOUR, 3)
    found = sum_rollups(project.pk, Question(window, ("node",), ("runs",), (), slots))
    assert sorted(found) == [("next_step", 0, 2), ("next_step", 1, 1), ("next_step", 2, 2)]


def test_a_time_ahead_of_the_clock_is_told_in_the_minute_of_its_arrival(
    project: Project, now: datetime, settle: Any
) -> None:
    post_events(project, succeeded(occurred_at=(now + 3 * HOUR).isoformat()))
    settle()
    wanted = (("node",), ("runs",))
    arrived = align_to(Grain.MINUTE, now, now + timedelta(minutes=3))
    ahead = align_to(Grain.HOUR, now + 2 * HOUR, now + 4 * HOUR)
    assert sum_rollups(project.pk, Question(arrived, *wanted)) == [("next_step", 1)]
    assert sum_rollups(project.pk, Question(ahead, *wanted)) == []


@pytest.mark.parametrize(
    ("dimensions", "measures", "terms"),
    [
        (("node; --",), ("runs",), ()),
        (("node",), ("runs; --",), ()),
        (("node",), ("runs",), (Term("attempt", "1"),)),
    ],
)
def test_names_that_are_no_columns_are_refused(
    now: datetime, dimensions: tuple[str, ...], measures: tuple[str, ...], terms: tuple[Term, ...]
) -> None:
    window = align_to(Grain.HOUR, now - HOUR, now)
    with pytest.raises(ValueError, match=r"rollups|counted"):
        Question(window, dimensions, measures, terms)


def test_versions_are_not_known_by_the_minute(now: datetime) -> None:
    window = align_to(Grain.MINUTE, now - HOUR, now)
    with pytest.raises(ValueError, match="by the hour"):
        Question(window, ("source",), ("runs",))


def test_latest_degraded_runs_are_read_from_the_newest_day_while_it_has_enough(
    project: Project, now: datetime, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    times = [now - timedelta(days=3), now - HOUR]
    post_events(project, *(degraded(occurred_at=at.isoformat()) for at in times))
    for limit, queries in ((1, 1), (2, 2)):
        with django_assert_num_queries(queries):
            found = latest_events(project.pk, [EventKind.DEGRADED], Selection("7d"), now, limit)
        assert [event.occurred_at for event in found] == times[::-1][:limit]
