"""The range and the filters of a page."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.selection.selection import (
    PARAMETERS,
    Selection,
    SelectionError,
    read_selection,
    require_selection,
)
from diagnostics.store.windows import floor

AT = datetime(2026, 11, 22, tzinfo=UTC)


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


def test_an_outcome_has_the_name_that_runs_have_or_the_one_of_events() -> None:
    assert require_selection({"outcome": "recovered"}).filters == {"outcome": "repaired"}
    with pytest.raises(SelectionError, match="cancelled, recovered"):
        require_selection({"outcome": "mended"})


def test_change_of_none_takes_a_filter_out() -> None:
    selection = read_selection({"provider": "p", "model": "m"})
    assert selection.query(provider=None) == "model=m"
    assert selection.query(range="1h") == "range=1h&provider=p&model=m"


def test_narrowing_keeps_null_apart_from_no_filter() -> None:
    selection = read_selection({"range": "1h"})
    assert selection.query_for(provider=None, model="m") == ("range=1h&provider=-&model=m")


def test_selection_keeps_what_lies_inside() -> None:
    selection = read_selection({"provider": "p"})
    assert selection.keeps({"provider": "p", "model": None})
    assert not selection.keeps({"provider": None, "model": None})


def test_range_reaches_back_from_its_end() -> None:
    selection = read_selection({"range": "6h"})
    until = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert until - selection.since(until) == timedelta(hours=6)
    assert selection.range_words == "6 h"


def test_times_take_the_place_of_a_preset() -> None:
    asked = {"from": "2026-11-20T00:00:00+00:00", "to": "2026-11-21T12:00:00+00:00"}
    selection = read_selection(asked)
    now = datetime(2026, 11, 22, tzinfo=UTC)
    since, until = selection.window(now)
    assert (until - since, selection.span) == (timedelta(hours=36),) * 2
    assert selection.range_words == "2026-11-20 00:00 to 2026-11-21 12:00"
    assert read_selection(dict(parse_qsl(selection.query()))) == selection
    assert selection.query(range="1h") == "range=1h"


def test_a_time_without_offset_is_meant_in_the_zone_asked_for() -> None:
    asked = {"from": "2026-11-20T00:00", "tz": "Asia/Tokyo"}
    found = read_selection(asked)
    assert found.begin == datetime(2026, 11, 19, 15, tzinfo=UTC)
    assert read_selection({"from": "2026-11-20T00:00"}).faults.keys() == {"from"}


def test_a_day_on_which_the_clocks_change_has_its_hours() -> None:
    asked = {"from": "2026-10-25T00:00", "to": "2026-10-26T00:00", "tz": "Europe/Berlin"}
    assert read_selection(asked).span == timedelta(hours=25)
    begin = read_selection({**asked, "from": "2026-03-29T03:30"}).begin
    assert begin is not None
    assert floor(begin, timedelta(days=1)) == datetime(2026, 3, 29, tzinfo=UTC)


def test_filters_say_what_answers_them() -> None:
    assert not read_selection({"model": "m", "kind": "truncated"}).needs_events
    assert not read_selection({"q": "model:m -env:dev"}).needs_events
    assert read_selection({"prompt_version": "v"}).needs_versions
    by_id = read_selection({"correlation_id": "c"})
    assert (by_id.needs_events, by_id.scans_events) == (True, False)
    for asked in ({"attempt": "2"}, {"q": "word"}, {"pointer": "/steps"}):
        assert read_selection(asked).scans_events


def test_a_scan_stays_within_seven_days_and_says_so() -> None:
    now = datetime(2026, 11, 22, tzinfo=UTC)
    since, until, said = read_selection({"range": "30d", "q": "x"}).scanned_window(now)
    assert until - since == timedelta(days=7)
    assert said
    assert read_selection({"range": "30d"}).scanned_window(now)[2] is None


def test_every_filter_is_a_chip_that_can_be_taken_out() -> None:
    selection = read_selection({"provider": "-", "q": 'model:a "b c" -env:dev'})
    chips = selection.chips()
    assert [chip.text for chip in chips] == ["unknown", "model:a", "-env:dev", '"b c"']
    for chip in chips:
        rest = read_selection(dict(parse_qsl(chip.without)))
        assert len(rest.chips()) == len(chips) - 1
        assert chip not in rest.chips()


def test_terms_of_one_field_are_alternatives_and_negative_ones_exclude() -> None:
    selection = read_selection({"q": "model:a model:b -model:ab"})
    kept = [name for name in ("a1", "b1", "ab", "c", None) if keeps(selection, name)]
    assert kept == ["a1", "b1"]


def keeps(selection: Selection, model: str | None) -> bool:
    return selection.keeps({"model": model, "provider": "p"})


def test_a_strict_reading_names_every_fault() -> None:
    asked = {"from": "soon", "outcome": "x", "q": "colour:red", "prvider": "p"}
    with pytest.raises(SelectionError) as found:
        require_selection(asked)
    assert found.value.faults.keys() == {"from", "outcome", "q", "prvider"}
    assert "colour" in found.value.faults["q"]


def test_times_that_do_not_follow_each_other_are_named_once() -> None:
    wrong = read_selection({"from": "2026-11-20T12:00Z", "to": "2026-11-20T11:00Z"})
    assert wrong.faults == {"to": "must be after From"}
    assert not wrong.is_custom


@given(st.dictionaries(st.sampled_from([*PARAMETERS, "other"]), st.text(max_size=30), max_size=6))
def test_any_query_is_read_leniently_and_written_back(asked: dict[str, str]) -> None:
    selection = read_selection(asked)
    again = read_selection(dict(parse_qsl(selection.query())))
    assert again.terms == selection.terms
    assert again.window(AT) == selection.window(AT)
    # Times and zones that were wrong are gone; a value that cannot be stays, and is told.
    assert again.faults.keys() <= {"outcome", "attempt", "q"}
    assert len(again.chips()) == len(selection.chips())
