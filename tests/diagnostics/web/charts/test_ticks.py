"""Marks in small drawings."""

from diagnostics.web.charts.bars import draw_ticks


def test_marks_that_nobody_could_tell_apart_are_drawn_as_one() -> None:
    drawn = draw_ticks([0.5, 0.1, 0.101, 0.103, 0.104, 1.0], 960, 26)
    assert drawn == "M96 0v26M99 0v26M480 0v26M960 0v26"


def test_no_marks_are_no_path() -> None:
    assert draw_ticks([], 192, 28) == ""
