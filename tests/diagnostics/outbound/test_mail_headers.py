"""Heads of mails: one line, whatever somebody calls a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.outbound.mail_headers import (
    LONGEST_SUBJECT,
    clean_header,
    clean_subject,
    message_id,
)

CASES = {
    "plain": ("Planner daily", "Planner daily"),
    "a header of its own": ("x\r\nBcc: a@b", "x Bcc: a@b"),
    "a lone line feed": ("x\nBcc: a@b", "x Bcc: a@b"),
    "next line and separators": ("a\x85b\u2028c\u2029d", "a b c d"),
    "null": ("a\x00b", "a b"),
    "turned direction": ("a\u202eb", "a b"),
    "a lone surrogate": ("a\ud800b", "a b"),
    "letters of any script": ("Größe 大きい", "Größe 大きい"),
}


@pytest.mark.parametrize(("given_", "expected"), CASES.values(), ids=CASES)
def test_s15_a_header_is_one_line(given_: str, expected: str) -> None:
    assert clean_header(given_) == expected


def test_a_long_subject_is_cut_with_an_ellipsis() -> None:
    cut = clean_subject("word " * 100)
    assert len(cut) <= LONGEST_SUBJECT
    assert cut.endswith("word…")


@given(st.text())
def test_s15_no_text_breaks_a_header(text: str) -> None:
    cleaned = clean_subject(text)
    assert cleaned == clean_subject(cleaned)
    assert len(cleaned.splitlines()) <= 1
    cleaned.encode()


def test_a_message_id_carries_only_what_ids_may() -> None:
    assert message_id("report-7-2026 11/22", "a.b") == "<report-7-2026-11-22@a.b>"
    assert message_id("x>\r\nBcc: y", "") == "<x---Bcc--y@localhost>"
