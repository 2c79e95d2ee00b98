"""Text is cut on character borders and never through a marker."""

import pytest

from failsoft.redaction.pipeline import PREVIEW_BYTES, cut

MARK = "[REDACTED:jwt]"

# text, limit, kept
CUTS = [
    ("abc", 3, "abc"),
    ("abcd", 3, "abc"),
    ("", 0, ""),
    ("a", 0, ""),
    ("éé", 3, "é"),
    ("😀😀", 7, "😀"),
    ("😀", 3, ""),
    (f"ab{MARK}cd", 2 + len(MARK), f"ab{MARK}"),
    (f"ab{MARK}cd", 1 + len(MARK), "ab"),
    (f"ab{MARK}cd", 3, "ab"),
    ("[REDACTED:not one", 5, "[REDA"),
    ("\ud800\ud800", 4, "\ud800"),
]


@pytest.mark.parametrize(("text", "limit", "kept"), CUTS)
def test_a_cut_keeps_whole_characters_and_markers(text: str, limit: int, kept: str) -> None:
    assert cut(text, limit) == kept


def test_s0_38_a_preview_is_eight_kibibytes_at_most() -> None:
    assert len(cut("é" * 1_000_000).encode()) == PREVIEW_BYTES == 8192
