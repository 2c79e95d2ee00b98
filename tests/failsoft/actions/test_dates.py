"""Dates as people write them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.actions.entries import resolve_date

# A Saturday.
NOW = datetime(2026, 11, 21, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-24", "2026-12-24T00:00:00+00:00"),
        ("2026-12-24T18:00:00+01:00", "2026-12-24T17:00:00+00:00"),
        ("2026-12-24 18:00", "2026-12-24T18:00:00+00:00"),
        ("today", "2026-11-21T00:00:00+00:00"),
        (" Tomorrow ", "2026-11-22T00:00:00+00:00"),
        ("in 3 days", "2026-11-24T00:00:00+00:00"),
        ("in a week", "2026-11-28T00:00:00+00:00"),
        ("next week", "2026-11-28T00:00:00+00:00"),
        ("Friday", "2026-11-27T00:00:00+00:00"),
        ("next friday", "2026-11-27T00:00:00+00:00"),
        # The same weekday is the one that comes, not today.
        ("on saturday", "2026-11-28T00:00:00+00:00"),
    ],
)
def test_a_date_is_resolved_from_now(text: str, expected: str) -> None:
    resolved = resolve_date(text, NOW)
    assert resolved is not None
    assert resolved.isoformat() == expected


@pytest.mark.parametrize(
    "text", [None, "", "blursday", "next blursday", "2026-13-45", "9999-01-01", "soon"]
)
def test_s4_16_garbage_is_no_date(text: str | None) -> None:
    assert resolve_date(text, NOW) is None


@given(st.text() | st.from_regex(r"[0-9-]{8,10}(T[0-9:+-]*)?"))
def test_s4_16_no_text_raises(text: str) -> None:
    resolve_date(text, NOW)
