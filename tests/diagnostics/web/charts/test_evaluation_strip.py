"""Looks as a strip: neighbours join, a busy one is drawn as few paths, words go with it."""

from diagnostics.web.charts.strips import EvaluationMark, evaluation_strip


def test_neighbours_of_one_tone_are_one_bar() -> None:
    seen = [EvaluationMark("good", "quiet", f"12:{minute:02} UTC") for minute in range(3)]
    found = evaluation_strip([*seen, EvaluationMark("bad", "fires", "12:03 UTC")])
    assert [(bar.x, bar.width, bar.tone) for bar in found.cells] == [
        (224, 11, "good"),
        (236, 3, "bad"),
    ]
    assert found.text == (
        "last 4 evaluations: quiet 3 times, 12:00 UTC to 12:02 UTC; fires 12:03 UTC"
    )
    assert not found.is_busy


def test_a_busy_strip_is_one_path_a_tone() -> None:
    seen = [
        EvaluationMark(("good", "bad")[place % 2], ("quiet", "fires")[place % 2], "12:00 UTC")
        for place in range(80)
    ]
    found = evaluation_strip(seen)
    assert found.is_busy
    assert [tone for tone, _ in found.paths] == ["good", "bad"]
    assert found.paths[1][1].startswith("M4 0h3v14h-3z")


def test_no_looks() -> None:
    assert evaluation_strip([]).text == "last 0 evaluations: none yet"
