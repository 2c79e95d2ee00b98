"""An answer for an assistant fits, says that it is data, and hides nothing from its reader."""

import json

import pytest

from diagnostics.mcp.bounds import MAX_ANSWER_BYTES, NOTICE, TooLongError, write_answer


def test_data_that_fits_is_given_whole_beside_its_notice() -> None:
    assert json.loads(write_answer({"items": [1, 2]})) == {
        "notice": NOTICE,
        "data": {"items": [1, 2]},
    }


@pytest.mark.parametrize(
    "data",
    [
        {"items": [{"text": "x" * 3_000}] * 50, "next": "c"},
        {"items": [{"text": "\N{SNOWMAN}" * 900}] * 90, "next": "c"},
        {"text": "x" * 1_000_000},
    ],
)
def test_what_is_too_long_is_cut_and_says_so(data: object) -> None:
    text = write_answer(data)
    assert len(text.encode()) <= MAX_ANSWER_BYTES
    assert "were cut" in json.loads(text)["cut"]


def test_the_cursor_behind_items_that_were_cut_is_not_given() -> None:
    cut = json.loads(write_answer({"items": [0] * 101, "next": "c"}))
    assert len(cut["data"]["items"]) == 100
    assert "next" not in cut["data"]
    assert json.loads(write_answer({"items": [0], "next": "c"}))["data"]["next"] == "c"


def test_what_no_cut_makes_short_enough_is_refused() -> None:
    with pytest.raises(TooLongError, match="narrow the filters"):
        write_answer({f"name {number}": "x" for number in range(10_000)})


def test_signs_that_nobody_sees_are_shown_as_escapes_and_stay_the_same_text() -> None:
    hidden = "a\u202eb\u200bc\x9b\U000e0041"
    text = write_answer({"name": hidden})
    assert r"a\u202eb\u200bc\u009b\udb40\udc41" in text
    assert json.loads(text)["data"]["name"] == hidden
