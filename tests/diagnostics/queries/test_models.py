"""Reads of models, comparisons and retry spend, from stored events."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from django.db import IntegrityError, transaction
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.analysis.series import ModelKey
from diagnostics.console.comparison import Against, parts_of, sums_by_version
from diagnostics.console.model_story import sample_calls
from diagnostics.ingest.models import Deploy
from diagnostics.ingest.recording import record
from diagnostics.prices.models import Price, prices_of
from diagnostics.prices.prices import listed_price, look_up_prices, retry_spend, total_spend
from diagnostics.queries.models import (
    MOST_SLOTS,
    calls_by_model,
    calls_by_prompt,
    calls_over_time,
    is_known_model,
    sums_between,
)
from diagnostics.queries.series import slot_width, window_of
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import read_selection
from diagnostics.store.aggregation import fold
from diagnostics.store.windows import WIDTHS, Grain, TimeWindow, align, align_to
from tests.diagnostics.builders import make_event, succeeded
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db
FAKE: ModelKey = ("fake", "fake-1")
# Hours are kept for 13 months: what is asked of them is asked soon after.
IN_MAY = datetime(2026, 5, 2, tzinfo=UTC)


@pytest.fixture
def at() -> datetime:
    return clock.now() - timedelta(minutes=20)


def post_calls(project: Project, good: int, bad: int, at: datetime, **fields: Any) -> None:
    made = []
    for number in range(good + bad):
        told = {
            "occurred_at": at.isoformat(),
            "attempt": 1,
            "parse_error_type": "truncated",
            "correlation_id": f"run-{uuid4().hex[:10]}",
            **fields,
        }
        if number < good:
            told = succeeded(**{**told, "parse_error_type": None})
        made.append(make_event(**told))
    record(project.pk, made)


def around(at: datetime) -> TimeWindow:
    now = clock.now()
    return align(at - timedelta(hours=1), now, now)


def test_calls_are_counted_by_model_beside_the_week_before(project: Project, at: datetime) -> None:
    post_calls(project, 3, 2, at)
    post_calls(project, 9, 1, at - timedelta(days=1))
    now, before = calls_by_model(project.pk, around(at), ())
    assert (now[FAKE].calls, now[FAKE].failed) == (5, 2)
    assert now[FAKE].by_kind == {"truncated": 2}
    assert (before[FAKE].calls, before[FAKE].failed) == (10, 1)


def test_another_project_is_not_counted(project: Project, at: datetime) -> None:
    other = Project.objects.create(slug="o", name="Other")
    post_calls(other, 3, 2, at, provider="theirs")
    assert calls_by_model(project.pk, around(at), ()) == ({}, {})
    assert is_known_model(other.pk, "theirs", "fake-1") is False
    assert sums_between(project.pk, around(at), (), ("attempts",)) == {"attempts": 0}


def test_terms_narrow_every_read(project: Project, at: datetime) -> None:
    post_calls(project, 3, 2, at, environment="prod")
    post_calls(project, 4, 0, at, environment="dev")
    terms = (Term("environment", "prod"),)
    sums = sums_between(project.pk, around(at), terms, ("attempts", "truncated"))
    assert sums == {"attempts": 5, "truncated": 2}


def test_prompt_versions_are_told_apart(project: Project, at: datetime) -> None:
    post_calls(project, 3, 2, at, prompt_version="v1")
    post_calls(project, 1, 0, at)
    found = calls_by_prompt(project.pk, around(at), ())
    assert {version: one.calls for version, one in found.items()} == {"v1": 5, None: 1}


def test_slots_hold_every_call_once(project: Project, at: datetime) -> None:
    post_calls(project, 3, 2, at)
    post_calls(project, 1, 1, at - timedelta(minutes=30))
    over_time = calls_over_time(project.pk, around(at), (), clock.now())
    assert sum(slot.runs for slot in over_time.buckets) == 7
    assert sum(slot.degraded for slot in over_time.buckets) == 3
    assert [slot.runs for slot in over_time.buckets if slot.runs] == [2, 5]


@pytest.mark.parametrize("hours", [1, 6, 24, 168, 720, 2160, 9480])
def test_slots_are_round_and_few(hours: int) -> None:
    now = clock.now()
    window = align(now - timedelta(hours=hours), now, now)
    width = slot_width(window, (), now, 50)
    assert (window.until - window.since) / width <= MOST_SLOTS
    assert width % timedelta(minutes=1) == timedelta(0)
    if window.finest is Grain.DAY:
        assert not width % WIDTHS[Grain.DAY]


def test_good_and_failed_calls_have_spreads_of_their_own(project: Project, at: datetime) -> None:
    post_calls(project, 4, 0, at, latency_ms=100, output_tokens=20)
    post_calls(project, 0, 2, at, latency_ms=900)
    selection = read_selection({"range": "1h"})
    found = sample_calls(project.pk, selection, at - timedelta(hours=1), clock.now())
    assert (found["good"]["latency_ms"].count, found["good"]["latency_ms"].half) == (4, 100)
    assert (found["failed"]["latency_ms"].nearly_all, found["failed"]["output_tokens"].count) == (
        900,
        0,
    )
    assert found["is_cut"] is False


def test_more_than_seven_days_are_cut_and_said(project: Project, at: datetime) -> None:
    found = sample_calls(project.pk, read_selection({}), at - timedelta(days=30), clock.now())
    assert found["is_cut"]
    assert clock.now() - found["since"] < timedelta(days=7, minutes=1)


def price(project: Project, **fields: Any) -> Price:
    row = {
        "provider": "fake",
        "model": "fake-1",
        "input_per_million": Decimal(2),
        "output_per_million": Decimal(8),
        "valid_from": (clock.now() - timedelta(days=30)).date(),
        **fields,
    }
    return Price.objects.create(project=project, **row)


def test_retries_are_paid_at_the_price_of_their_model(
    project: Project, at: datetime, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    price(project)
    tokens = {"input_tokens": 1_000, "output_tokens": 500, "latency_ms": 700}
    post_calls(project, 3, 2, at, attempt=2, **tokens)
    post_calls(project, 5, 0, at, attempt=1, **tokens)
    post_calls(project, 1, 0, at, attempt=2, model="free", **tokens)
    window = around(at)
    with django_assert_num_queries(2):
        spent = retry_spend(project.pk, prices_of(project.pk), window)
    mine = spent[FAKE]
    assert (mine.calls, mine.tokens, mine.milliseconds) == (5, 7_500, 3_500)
    assert mine.money_usd == Decimal("0.03")
    assert spent["fake", "free"].money_usd is None
    total = total_spend(spent)
    assert (total.calls, total.money_usd) == (6, Decimal("0.03"))


def test_a_price_that_begins_in_the_window_applies_from_its_day(
    project: Project, at: datetime
) -> None:
    price(project)
    begun = {"input_per_million": Decimal(20), "output_per_million": Decimal(80)}
    price(project, valid_from=at.date(), **begun)
    tokens = {"input_tokens": 1_000, "output_tokens": 500, "latency_ms": 700}
    for day in (at - timedelta(days=1), at):
        post_calls(project, 1, 0, day, attempt=2, **tokens)
    window = align(at - timedelta(days=2), at + timedelta(hours=1), clock.now())
    spent = retry_spend(project.pk, prices_of(project.pk), window)
    assert spent[FAKE].money_usd == Decimal("0.066")


def test_a_price_begins_with_its_day_in_utc_wherever_the_window_begins(
    project: Project, at: datetime
) -> None:
    price(project)
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    price(project, valid_from=day.date(), input_per_million=Decimal(20))
    tokens = {"input_tokens": 1_000, "output_tokens": 0, "latency_ms": 700}
    post_calls(project, 1, 0, day - timedelta(minutes=30), attempt=2, **tokens)
    # Of a report whose week begins at midnight in Tokyo.
    since = (day - timedelta(hours=1)).astimezone(ZoneInfo("Asia/Tokyo"))
    window = align(since, day + timedelta(hours=1), clock.now())
    spent = retry_spend(project.pk, prices_of(project.pk), window)
    assert spent[FAKE].money_usd == Decimal("0.002")


def test_prices_of_others_and_unknown_ones_are_not_used(project: Project) -> None:
    other = Project.objects.create(slug="o", name="Other")
    price(other)
    price(project, origin="listed", input_per_million=None, output_per_million=None)
    assert prices_of(project.pk) == {}


@pytest.mark.parametrize(
    "fields",
    [{"input_per_million": None}, {"currency": "EUR"}, {"output_per_million": -1}],
    ids=["half", "other money", "negative"],
)
def test_what_is_no_price_is_refused(project: Project, fields: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        price(project, **fields)


def test_listed_prices_are_asked_for_once_and_the_unknown_remembered(
    project: Project, at: datetime
) -> None:
    post_calls(project, 1, 0, at, provider="openai", model="gpt-4.1")
    post_calls(project, 1, 0, at)
    post_calls(project, 1, 0, at, provider=None)
    fold()
    assert look_up_prices() == 2
    assert look_up_prices() == 0
    listed = prices_of(project.pk)
    assert set(listed) == {("openai", "gpt-4.1")}
    assert listed["openai", "gpt-4.1"][0].is_own is False


def test_the_list_is_asked_for_a_million_tokens() -> None:
    found = listed_price("openai", "gpt-4.1")
    assert found.input_per_million == Decimal(2)
    assert found.output_per_million == Decimal(8)
    assert listed_price("openai", "no-such-model") == (None, None)
    assert listed_price("nobody", "gpt-4.1") == (None, None)


@pytest.mark.parametrize(
    ("against", "shift"), [(Against.PERIOD, timedelta(hours=2)), (Against.WEEK, timedelta(days=7))]
)
def test_the_other_side_has_as_much_time(
    project: Project, against: Against, shift: timedelta
) -> None:
    asked = {"from": "2026-05-01T10:00:00Z", "to": "2026-05-01T12:00:00Z"}
    selection = read_selection(asked)
    shift_clock(IN_MAY)
    parts = parts_of(project.pk, selection, selection, against, IN_MAY)
    a, b = parts.a.window, parts.b.window
    assert (a.since - b.since, a.until - b.until) == (shift, shift)


def test_the_other_side_is_no_longer_by_the_rest_of_the_hour_that_runs(project: Project) -> None:
    now = datetime(2026, 5, 3, 7, 26, tzinfo=UTC)
    shift_clock(now)
    selection = read_selection({"range": "24h"})
    window = parts_of(project.pk, selection, selection, Against.PERIOD, now).b.window
    # Minutes are kept for 48 hours, then whole hours.
    assert window.since == datetime(2026, 5, 1, 7, tzinfo=UTC)
    assert window.until == datetime(2026, 5, 2, 7, 26, tzinfo=UTC)


def test_a_deploy_stands_between_the_sides(project: Project) -> None:
    now = clock.now()
    Deploy.objects.create(project=project, at=now - timedelta(hours=3), kind="release", version="7")
    selection = read_selection({"range": "7d"})
    parts = parts_of(project.pk, selection, selection, Against.DEPLOY, now)
    assert parts.deploy is not None
    assert parts.a.window.since <= parts.deploy.at
    assert parts.b.window.until == parts.a.window.since
    # Of the hour that runs all is read: in its first minute that makes four.
    assert parts.a.window.until - parts.a.window.since <= timedelta(hours=4)


def test_without_a_deploy_the_time_before_is_compared(project: Project) -> None:
    observed = {"kind": "observed_upstream", "previous": "a", "version": "b", "model": "fake-1"}
    Deploy.objects.create(project=project, at=clock.now() - timedelta(hours=3), **observed)
    selection = read_selection({"range": "24h"})
    now = clock.now()
    parts = parts_of(project.pk, selection, selection, Against.DEPLOY, now)
    assert parts.deploy is None
    assert parts.b.window.until == window_of(selection, now).since


def test_times_of_its_own_are_read(project: Project) -> None:
    asked = {"from": "2026-05-01T10:00:00Z", "to": "2026-05-01T12:00:00Z"}
    other = read_selection(asked)
    shift_clock(IN_MAY)
    parts = parts_of(project.pk, read_selection({}), other, Against.CUSTOM, IN_MAY)
    window = align_to(Grain.HOUR, *other.window(IN_MAY))
    assert (parts.b.window.since, parts.b.window.until) == (window.since, window.until)


def test_versions_are_summed_apart(project: Project, at: datetime) -> None:
    post_calls(project, 3, 2, at, prompt_version="v1")
    post_calls(project, 1, 0, at, prompt_version="v2")
    selection = read_selection({"range": "1h"})
    parts = parts_of(project.pk, selection, selection, Against.SAME, clock.now())
    found = sums_by_version(project.pk, parts.a)
    assert {key[0]: sums["attempts"] for key, sums in found.items()} == {"v1": 5, "v2": 1}
