"""Periods of reports: whole local days, whatever the clocks do."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.reports.periods import Due, ReportPeriod, Schedule, instant_of, start_of

HOUR = timedelta(hours=1)
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/Sao_Paulo",
    "Asia/Kathmandu",
    "UTC",
)
# (zone, day, its first instant in UTC, its length in hours)
DAYS = {
    "plain": ("UTC", date(2026, 11, 22), "2026-11-22T00:00", 24),
    "Berlin, clocks forward": ("Europe/Berlin", date(2026, 3, 29), "2026-03-28T23:00", 23),
    "Berlin, clocks back": ("Europe/Berlin", date(2026, 10, 25), "2026-10-24T22:00", 25),
    "New York, clocks forward": ("America/New_York", date(2026, 3, 8), "2026-03-08T05:00", 23),
    "New York, clocks back": ("America/New_York", date(2026, 11, 1), "2026-11-01T04:00", 25),
    "Lord Howe, half an hour back": (
        "Australia/Lord_Howe",
        date(2026, 4, 5),
        "2026-04-04T13:00",
        24.5,
    ),
    "Lord Howe, half an hour forward": (
        "Australia/Lord_Howe",
        date(2026, 10, 4),
        "2026-10-03T13:30",
        23.5,
    ),
    "Apia, the day that was skipped": ("Pacific/Apia", date(2011, 12, 30), "2011-12-30T10:00", 0),
    "Apia, the day before it": ("Pacific/Apia", date(2011, 12, 29), "2011-12-29T10:00", 24),
    "Sao Paulo, no midnight": ("America/Sao_Paulo", date(2018, 11, 4), "2018-11-04T03:00", 23),
    "Beirut, no midnight": ("Asia/Beirut", date(2026, 3, 29), "2026-03-28T22:00", 23),
    "St. John's, back at a minute past midnight": (
        "America/St_Johns",
        date(2010, 11, 7),
        "2010-11-07T02:30",
        25,
    ),
    "Toronto, clocks forward across midnight": (
        "America/Toronto",
        date(1919, 3, 31),
        "1919-03-31T04:30",
        23.5,
    ),
    "a leap day": ("Europe/Berlin", date(2028, 2, 29), "2028-02-28T23:00", 24),
}
TIMES = {
    "a time that is left out comes after the gap": (
        "Europe/Berlin",
        date(2026, 3, 29),
        time(2, 30),
        "2026-03-29T01:30",
    ),
    "of a time that comes twice the first counts": (
        "Europe/Berlin",
        date(2026, 10, 25),
        time(2, 30),
        "2026-10-25T00:30",
    ),
    "half an hour is left out": (
        "Australia/Lord_Howe",
        date(2026, 10, 4),
        time(2, 15),
        "2026-10-03T15:45",
    ),
    "New York, left out": ("America/New_York", date(2026, 3, 8), time(2, 30), "2026-03-08T07:30"),
    "an ordinary morning": ("UTC", date(2026, 11, 22), time(8), "2026-11-22T08:00"),
}
# (cadence, weekday, month_day, at, now) -> (first day, last day, due), all in Berlin
LATEST = {
    "daily": ("daily", None, None, "2026-11-22T08:00", ("2026-11-21", "2026-11-21")),
    "daily, before its time": (
        "daily",
        None,
        None,
        "2026-11-22T06:59",
        ("2026-11-20", "2026-11-20"),
    ),
    "weekdays, on a Monday": (
        "weekdays",
        None,
        None,
        "2026-11-23T09:00",
        ("2026-11-20", "2026-11-22"),
    ),
    "weekdays, on a Saturday": (
        "weekdays",
        None,
        None,
        "2026-11-21T12:00",
        ("2026-11-19", "2026-11-19"),
    ),
    "weekly": ("weekly", 0, None, "2026-11-23T09:00", ("2026-11-16", "2026-11-22")),
    "weekly, without a day": (
        "weekly",
        None,
        None,
        "2026-11-23T09:00",
        ("2026-11-16", "2026-11-22"),
    ),
    "weekly, a day early": ("weekly", 0, None, "2026-11-22T09:00", ("2026-11-09", "2026-11-15")),
    "monthly, on the first": ("monthly", None, 1, "2026-11-22T09:00", ("2026-10-01", "2026-10-31")),
    "monthly, on the 31st of a short month": (
        "monthly",
        None,
        31,
        "2026-11-30T09:00",
        ("2026-10-31", "2026-11-29"),
    ),
    "monthly, February of a leap year": (
        "monthly",
        None,
        30,
        "2028-02-29T09:00",
        ("2028-01-30", "2028-02-28"),
    ),
}


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(("zone", "day", "begin", "hours"), DAYS.values(), ids=DAYS)
def test_a_local_day_begins_and_ends_where_the_zone_says(
    zone: str, day: date, begin: str, hours: float
) -> None:
    place = ZoneInfo(zone)
    assert start_of(day, place) == utc(begin)
    assert start_of(day + timedelta(days=1), place) - utc(begin) == hours * HOUR


@pytest.mark.parametrize(("zone", "day", "at", "expected"), TIMES.values(), ids=TIMES)
def test_a_local_time_is_one_instant(zone: str, day: date, at: time, expected: str) -> None:
    assert instant_of(day, at, ZoneInfo(zone)) == utc(expected)


@pytest.mark.parametrize(
    ("cadence", "weekday", "month_day", "now", "days"), LATEST.values(), ids=LATEST
)
def test_a_report_covers_the_days_since_the_one_before(
    cadence: str, weekday: int | None, month_day: int | None, now: str, days: tuple[str, str]
) -> None:
    schedule = Schedule(cadence, time(8), ZoneInfo("Europe/Berlin"), weekday, month_day)
    due = schedule.latest(utc(now))
    assert (due.period.first.isoformat(), due.period.last.isoformat()) == days
    assert due.at <= utc(now) < schedule.after(due.at).at


def test_a_date_that_does_not_exist_is_nobodys_period() -> None:
    schedule = Schedule("daily", time(8), ZoneInfo("Pacific/Apia"))
    found = schedule.between(utc("2011-12-28T00:00"), utc("2012-01-02T00:00"))
    assert [due.period.first.day for due in found] == [27, 28, 29, 31, 1]
    assert all(due.period.since < due.period.until for due in found)


def test_what_was_passed_over_is_bounded() -> None:
    schedule = Schedule("daily", time(8), ZoneInfo("UTC"))
    found = schedule.between(utc("2020-01-01T00:00"), utc("2026-01-01T00:00"))
    assert len(found) == 60
    assert found[-1].period.last == date(2025, 12, 30)


def test_the_period_before_has_as_many_days() -> None:
    period = ReportPeriod(date(2026, 3, 29), date(2026, 3, 30), ZoneInfo("Europe/Berlin"))
    assert period.before().until == period.since
    assert period.before().days == period.days == 1


schedules = st.builds(
    Schedule,
    st.sampled_from(["daily", "weekdays", "weekly", "monthly"]),
    st.times().map(lambda at: at.replace(second=0, microsecond=0)),
    st.sampled_from([ZoneInfo(name) for name in ZONES]),
    st.integers(0, 6),
    st.integers(1, 31),
)
SECONDS = (1_230_768_000, 1_893_456_000)  # 2009 to 2030
instants = st.integers(*SECONDS).map(lambda at: datetime.fromtimestamp(at, UTC))


def dues_around(schedule: Schedule, instant: datetime) -> list[Due]:
    """Give what is due from a month before an instant to well after it."""
    found = [schedule.latest(instant - 35 * 24 * HOUR)]
    while found[-1].period.since <= instant:
        found.append(schedule.after(found[-1].at))
    return found


@given(schedules, instants)
def test_c10_every_instant_lies_in_exactly_one_period(
    schedule: Schedule, instant: datetime
) -> None:
    around = dues_around(schedule, instant)
    holding = [d for d in around if d.period.since <= instant < d.period.until]
    assert len(holding) == 1
    ends = [due.period.until for due in around[:-1]]
    assert ends == [due.period.since for due in around[1:]]


@given(schedules, instants)
def test_a_report_is_due_after_its_period_and_in_order(
    schedule: Schedule, instant: datetime
) -> None:
    due, following = schedule.latest(instant), schedule.after(instant)
    assert due.period.until <= due.at <= instant < following.at
    assert due.period.until == following.period.since
    assert schedule.latest(following.at) == following
    assert schedule.between(due.at, following.at + HOUR / 3600)[:2] == [due, following]
