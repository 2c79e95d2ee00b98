"""One cell per attempt."""

from diagnostics.web.charts.strips import MOST_CELLS, strip


def test_cells_stand_in_the_order_of_the_attempts() -> None:
    drawn = strip([("bad", "truncated"), ("good", "valid")])
    assert [(cell.x, cell.tone) for cell in drawn.cells] == [(0, "bad"), (10, "good")]
    assert drawn.text == "attempts: truncated, valid"


def test_the_latest_attempts_are_shown_when_there_are_many() -> None:
    drawn = strip([("bad", str(number)) for number in range(MOST_CELLS + 5)])
    assert len(drawn.cells) == MOST_CELLS
    assert drawn.cells[-1].label == str(MOST_CELLS + 4)


def test_no_attempts_are_an_empty_strip() -> None:
    assert strip([]).width == 0
