"""Labels of marks on an axis of time."""

from datetime import UTC, datetime

from diagnostics.web.charts.series import Flag, Mark, number_flags

MARK = Mark(datetime(2026, 3, 1, tzinfo=UTC), "release", "v1")


def labels(*places: float) -> list[tuple[float, str]]:
    flags = [Flag(x, number, MARK) for number, x in enumerate(places, start=1)]
    return [(tick.place, tick.label) for tick in number_flags(flags)]


def test_flags_that_stand_apart_have_a_number_each() -> None:
    assert labels(100, 500) == [(10.0, "1"), (50.0, "2")]


def test_flags_at_one_place_share_a_label() -> None:
    assert labels(100, 100, 110, 500) == [(10.5, "1-3"), (50.0, "4")]


def test_an_axis_without_flags_has_no_label() -> None:
    assert labels() == []
