"""The lines around a fault."""

from hypothesis import given
from hypothesis import strategies as st

from diagnostics.failures.excerpt import LONGEST_LINE, ExcerptLine, excerpt

TEXT = "\n".join(f"line {number}" for number in range(1, 21))


def joined(line: ExcerptLine) -> str:
    return "".join(piece.text for piece in line.pieces)


def test_lines_around_the_fault_are_shown_and_the_rest_counted() -> None:
    shown = excerpt(TEXT, [(10, 3)])
    assert [line.number for line in shown.lines] == [7, 8, 9, 10, 11, 12, 13]
    assert (shown.above, shown.below) == (6, 7)


def test_caret_stands_under_the_character() -> None:
    line = excerpt('{"a": nope}', [(1, 7)]).lines[0]
    assert line.caret_indent == " " * 6
    assert [(piece.text, piece.kind) for piece in line.pieces] == [
        ('{"a": ', "plain"),
        ("n", "at"),
        ("ope}", "plain"),
    ]


def test_fault_past_the_end_points_behind_the_last_character() -> None:
    line = excerpt('{"a"', [(1, 5)]).lines[0]
    assert line.pieces[-1].kind == "at"
    assert line.caret_indent == " " * 4


def test_every_faulty_line_is_marked_and_the_first_has_the_caret() -> None:
    lines = excerpt(TEXT, [(2, 1), (4, 1)]).lines
    assert [line.number for line in lines if line.faulty] == [2, 4]
    assert [line.number for line in lines if line.caret_indent is not None] == [2]


def test_long_line_is_cut_around_the_fault() -> None:
    line = excerpt("a" * 500 + "b" + "c" * 500, [(1, 501)]).lines[0]
    assert len(joined(line)) <= LONGEST_LINE + 2
    assert next(piece.text for piece in line.pieces if piece.kind == "at") == "b"


def test_redaction_markers_are_pieces_of_their_own() -> None:
    pieces = excerpt("key [REDACTED:bearer] end", []).lines[0].pieces
    assert [piece.kind for piece in pieces] == ["plain", "redacted", "plain"]


def test_place_outside_the_text_shows_the_beginning() -> None:
    shown = excerpt(TEXT, [(99, 1)])
    assert shown.lines[0].number == 1
    assert not any(line.faulty for line in shown.lines)


def test_short_text_is_whole() -> None:
    assert excerpt("{}", []).is_whole
    assert not excerpt(TEXT, [(10, 1)]).is_whole


@given(st.text(max_size=400), st.lists(st.tuples(st.integers(), st.integers(1))))
def test_any_text_and_any_place_give_an_excerpt(text: str, faults: list[tuple[int, int]]) -> None:
    shown = excerpt(text, faults)
    assert shown.lines
    assert shown.above + len(shown.lines) + shown.below == text.count("\n") + 1
