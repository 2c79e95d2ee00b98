"""A text with notes at places in it."""

from agents.lab.views import LONGEST_LINE, AnnotatedText, Note, annotate


def written(noted: AnnotatedText) -> list[str]:
    return ["".join(piece.text for piece in line.pieces) for line in noted.lines]


def marked(noted: AnnotatedText) -> list[str]:
    return [piece.text for line in noted.lines for piece in line.pieces if piece.kind == "at"]


def test_a_place_is_marked_and_said_below_its_line() -> None:
    noted = annotate('{\n  "a": 1,\n}', [Note(2, 9, "trailing_comma", "")])
    line = noted.lines[1]
    assert marked(noted) == [","]
    assert line.caret_indent == " " * 8
    assert written(noted) == ["{", '  "a": 1,', "}"]
    assert not line.is_faulty


def test_two_places_of_one_line_are_both_marked() -> None:
    notes = [Note(1, 2, "b", "", is_fault=True), Note(1, 4, "c", "")]
    noted = annotate("abcde", notes)
    assert marked(noted) == ["b", "d"]
    assert written(noted) == ["abcde"]
    assert noted.lines[0].is_faulty


def test_one_place_with_two_notes_is_marked_once() -> None:
    noted = annotate("abc", [Note(1, 2, "x", ""), Note(1, 2, "y", "")])
    assert marked(noted) == ["b"]
    assert len(noted.lines[0].notes) == 2


def test_long_texts_are_folded_around_their_notes() -> None:
    text = "\n".join(str(k) for k in range(1, 501))
    noted = annotate(text, [Note(100, 1, "x", ""), Note(400, 2, "y", "")])
    assert [line.number for line in noted.lines] == [*range(98, 103), *range(398, 403)]
    assert [line.gap for line in noted.lines if line.gap] == [97, 295]
    assert noted.below == 98


def test_long_lines_are_cut_around_the_note() -> None:
    row = "x" * 900 + "!" + "y" * 900
    noted = annotate(row, [Note(1, 901, "here", "")])
    assert marked(noted) == ["!"]
    assert len(written(noted)[0]) <= LONGEST_LINE + 2
    caret = len(noted.lines[0].caret_indent or "")
    assert written(noted)[0][caret] == "!"


def test_a_place_behind_the_end_is_a_blank() -> None:
    noted = annotate('{"a": 1', [Note(1, 8, "truncated", "", is_fault=True)])
    assert marked(noted) == [" "]


def test_without_notes_the_beginning_is_shown() -> None:
    noted = annotate("\n".join("x" for _ in range(500)), [])
    assert (len(noted.lines), noted.below) == (160, 340)


def test_more_notes_than_are_shown_are_counted() -> None:
    noted = annotate("abc", [Note(1, 1, str(k), "") for k in range(70)])
    assert noted.left_out == 10
