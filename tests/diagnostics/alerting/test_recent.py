"""Pages that look at the same verdict within a moment share it."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.statuses import recent_verdict_of, verdict_within
from diagnostics.selection.selection import Selection, read_selection
from tests.console import post_runs
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db


def test_a_second_look_within_the_time_judges_nothing(
    project: Project, settings: Any, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    settings.FAILSOFT_VERDICT_SECONDS = 10
    shift_clock()
    now = clock.now()
    post_runs(project, 60, 2, now - timedelta(hours=1))
    first = recent_verdict_of(project.pk, Selection(), now)
    # Whether an evaluator has stored one meanwhile.
    with django_assert_num_queries(1):
        assert recent_verdict_of(project.pk, Selection(), now) is first
    later = now + timedelta(seconds=60)
    assert recent_verdict_of(project.pk, Selection(), later) is not first
    other = Selection(filters={"model": "nobody"})
    assert recent_verdict_of(project.pk, other, now).state == "not_enough_data"
    assert first.told == verdict_within(project.pk, Selection(), now).told


def test_conditions_that_no_count_can_meet_make_no_other_verdict(
    project: Project, settings: Any, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    settings.FAILSOFT_VERDICT_SECONDS = 10
    now = clock.now()
    week = {"model": "claude-haiku", "range": "7d"}
    asked = {**week, "q": "weather kind:truncated -env:dev"}
    first = recent_verdict_of(project.pk, read_selection(asked), now)
    counted = read_selection({**week, "q": "-env:dev"})
    with django_assert_num_queries(0):
        assert recent_verdict_of(project.pk, counted, now) is first
    every = read_selection(week)
    assert recent_verdict_of(project.pk, every, now) is not first


def test_without_a_time_every_look_asks(project: Project) -> None:
    now = clock.now()
    first = recent_verdict_of(project.pk, Selection(), now)
    assert recent_verdict_of(project.pk, Selection(), now) is not first
