"""One shape per tone."""

from diagnostics.web.charts import SHAPES, shape_of


def test_no_two_tones_share_a_shape() -> None:
    assert len(set(SHAPES.values())) == len(SHAPES)


def test_unknown_tone_is_drawn_as_the_ring() -> None:
    assert shape_of("violet") == SHAPES["quiet"]
