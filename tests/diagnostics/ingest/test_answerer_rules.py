"""When what answers counts as changed."""

from datetime import UTC, datetime, timedelta

import pytest

from diagnostics.ingest.answerers import MOST_VALUES, SeenStretch, place

AT = datetime(2026, 11, 21, 14, tzinfo=UTC)
HOUR = timedelta(hours=1)


def hours(first: float, last: float) -> SeenStretch:
    return SeenStretch(AT + first * HOUR, AT + last * HOUR)


KNOWN = {"a": hours(-30, 0)}


@pytest.mark.parametrize(
    ("value", "seen", "known", "previous"),
    [
        # The first value is no change.
        ("a", hours(0, 0), {}, None),
        ("a", hours(3, 3), KNOWN, None),
        ("b", hours(1, 1), KNOWN, "a"),
        # Seen before and after the end of what was there: it is new all the same.
        ("b", hours(-1, 1), KNOWN, "a"),
        # Late: what came after it is known already.
        ("b", hours(-2, -1), KNOWN, None),
        ("b", hours(-90, -90), KNOWN, None),
        # Of several the latest was there before.
        ("c", hours(9, 9), {**KNOWN, "b": hours(1, 2)}, "b"),
        # To and fro within a day.
        ("a", hours(20, 20), {**KNOWN, "b": hours(1, 19)}, None),
        ("a", hours(30, 30), {**KNOWN, "b": hours(1, 29)}, "b"),
        # Back after a day, and late.
        ("a", hours(28, 28), {**KNOWN, "b": hours(1, 29)}, None),
        # Nothing else answered meanwhile: nothing was called.
        ("a", hours(90, 90), {**KNOWN, "b": hours(-20, -10)}, None),
    ],
)
def test_a_change_is_a_value_that_was_not_seen_for_a_day_after_another(
    value: str, seen: SeenStretch, known: dict[str, SeenStretch], previous: str | None
) -> None:
    assert place(value, seen, known).previous == previous


def test_a_stretch_is_extended_once_an_hour() -> None:
    assert place("a", hours(0.9, 0.9), KNOWN).stretch is None
    assert place("a", hours(1, 1), KNOWN).stretch == hours(-30, 1)
    assert place("a", hours(-90, -80), KNOWN).stretch is None


def test_a_value_that_comes_back_begins_a_new_stretch() -> None:
    known = {**KNOWN, "b": hours(1, 29)}
    assert place("a", hours(30, 31), known).stretch == hours(30, 31)


def test_a_late_value_is_not_kept_and_changes_when_it_is_seen_again() -> None:
    assert place("b", hours(-2, -1), KNOWN) == (None, None)
    assert place("b", hours(2, 2), KNOWN) == (hours(2, 2), "a")


def test_a_sender_that_names_each_call_anew_fills_no_table() -> None:
    many = {str(number): hours(-1, 0) for number in range(MOST_VALUES)}
    assert place("b", hours(1, 1), many) == (None, None)


def test_a_wrong_clock_makes_nothing_late() -> None:
    assert hours(1, 2).counted(AT) == hours(0, 0)
    assert hours(-1, 2).counted(AT) == hours(-1, 0)
    assert hours(-2, -1).counted(AT) == hours(-2, -1)
