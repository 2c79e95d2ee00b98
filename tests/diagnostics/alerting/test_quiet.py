"""When nobody is told."""

from datetime import UTC, datetime, timedelta

import pytest

from diagnostics.alerting.silences import Quiet, Repeats, is_silenced
from diagnostics.selection.query_language import Term

# Local time in Berlin goes back an hour in the night to 25 October 2026.
FRIDAY = datetime(2026, 10, 23, 20, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("repeats", "after", "is_on"),
    [
        (Repeats.ONCE, timedelta(0), True),
        (Repeats.ONCE, HOUR, False),
        (Repeats.ONCE, timedelta(days=1), False),
        (Repeats.DAILY, -HOUR, False),
        (Repeats.DAILY, timedelta(days=1), True),
        # The same local time is an hour later from Sunday on.
        (Repeats.DAILY, timedelta(days=2), False),
        (Repeats.DAILY, timedelta(days=2, hours=1), True),
        (Repeats.WEEKLY, timedelta(days=3, hours=1), False),
        (Repeats.WEEKLY, timedelta(days=7, hours=1, minutes=30), True),
    ],
)
def test_windows_come_round(repeats: Repeats, after: timedelta, *, is_on: bool) -> None:
    quiet = Quiet(FRIDAY, FRIDAY + HOUR, repeats=repeats, zone="Europe/Berlin")
    assert quiet.is_on(FRIDAY + after) is is_on


def test_a_window_over_midnight_lasts_into_the_next_day() -> None:
    late = FRIDAY + 3 * HOUR
    quiet = Quiet(late, late + 4 * HOUR, repeats=Repeats.DAILY)
    assert quiet.is_on(late + timedelta(days=1, hours=3))


def test_it_covers_what_its_terms_name() -> None:
    haiku = Quiet(FRIDAY, FRIDAY + HOUR, (Term("model", "haiku"),))
    one_rule = Quiet(FRIDAY, FRIDAY + HOUR, rule=7)
    assert haiku.covers(1, {"provider": "a", "model": "haiku"})
    assert not haiku.covers(1, {"provider": "a", "model": "opus"})
    # A slice of all models is not about this one alone.
    assert not haiku.covers(1, {})
    assert is_silenced([haiku, one_rule], FRIDAY, 7, {})
    assert not is_silenced([haiku, one_rule], FRIDAY, 8, {})
    assert not is_silenced([one_rule], FRIDAY + 2 * HOUR, 7, {})


def test_a_silenced_kind_covers_what_fails_in_no_other_way() -> None:
    cut = Quiet(FRIDAY, FRIDAY + HOUR, (Term("kind", "truncated"), Term("model", "haiku")))
    haiku = {"provider": "a", "model": "haiku"}
    assert cut.covers(1, haiku, ["truncated"])
    assert not cut.covers(1, haiku, ["truncated", "refusal"])
    assert not cut.covers(1, haiku)
    assert not cut.covers(1, {**haiku, "model": "opus"}, ["truncated"])
    others = Quiet(FRIDAY, FRIDAY + HOUR, (Term("kind", "refusal", is_negated=True),))
    assert others.covers(1, haiku, ["truncated"])
    assert not others.covers(1, haiku, ["truncated", "refusal"])
