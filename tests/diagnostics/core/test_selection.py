"""The range and the filters of a page."""

from datetime import UTC, datetime, timedelta

import pytest

from diagnostics.core.selection import read_selection


def test_nothing_asked_is_the_last_day_unfiltered() -> None:
    selection = read_selection({})
    assert (selection.range, dict(selection.filters)) == ("24h", {})
    assert selection.query() == ""


@pytest.mark.parametrize("text", ["", "2y", "24H", "\0", "x" * 999])
def test_unknown_range_is_the_default(text: str) -> None:
    assert read_selection({"range": text}).range == "24h"


def test_query_survives_a_round_trip() -> None:
    asked = {"range": "7d", "provider": "anthropic", "model": "a b&c=d"}
    selection = read_selection(asked)
    assert selection.query() == "range=7d&provider=anthropic&model=a+b%26c%3Dd"


def test_a_dash_asks_for_null() -> None:
    selection = read_selection({"provider": "-"})
    assert selection.filters == {"provider": None}
    assert selection.query() == "provider=-"


def test_change_of_none_takes_a_filter_out() -> None:
    selection = read_selection({"provider": "p", "model": "m"})
    assert selection.query(provider=None) == "model=m"
    assert selection.query(range="1h") == "range=1h&provider=p&model=m"


def test_narrowing_keeps_null_apart_from_no_filter() -> None:
    selection = read_selection({"range": "1h"})
    assert selection.narrowed_to(provider=None, model="m") == (
        "range=1h&provider=-&model=m"
    )


def test_selection_keeps_what_lies_inside() -> None:
    selection = read_selection({"provider": "p"})
    assert selection.keeps({"provider": "p", "model": None})
    assert not selection.keeps({"provider": None, "model": None})


def test_range_reaches_back_from_its_end() -> None:
    selection = read_selection({"range": "6h"})
    until = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert until - selection.since(until) == timedelta(hours=6)
    assert selection.range_words == "6 h"
