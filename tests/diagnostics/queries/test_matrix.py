"""Models by kinds of failure: shading, order, margins, and the sentence about them."""

from dataclasses import replace

import pytest

from diagnostics.analysis.series import ModelKey
from diagnostics.queries.call_counts import CallCounts, Side
from diagnostics.queries.matrix import MOST_KINDS, Matrix, build_matrix, excess, summarise_matrix
from diagnostics.store.rollups import FAILURE_KINDS

HAIKU: ModelKey = ("anthropic", "haiku")
GPT: ModelKey = ("openai", "gpt")


def counts(calls: int, **kinds: int) -> CallCounts:
    return CallCounts(calls, sum(kinds.values()), runs=calls, by_kind=kinds)


BEFORE = {HAIKU: counts(4000, truncated=80, not_json=120), GPT: counts(4000, not_json=40)}


def matrix(**now: CallCounts) -> Matrix:
    keys = {"haiku": HAIKU, "gpt": GPT}
    return build_matrix({keys[name]: one for name, one in now.items()}, BEFORE)


# failed, calls, failed before, calls before, level (a comment per row)
LEVELS = [
    (20, 1000, 200, 10_000, 0),  # the same share
    (36, 1000, 200, 10_000, 1),  # 1.6 points more, beyond chance
    (60, 1000, 200, 10_000, 2),  # 4 points more
    (120, 1000, 200, 10_000, 3),  # 10 points more
    (300, 1000, 200, 10_000, 4),  # 28 points more
    (2, 1000, 200, 10_000, -1),  # clearly fewer
    (2, 144, 2, 1000, 0),  # two failures
    (4, 100, 1, 10_000, 0),  # beyond chance, but four failures
    (40, 40, 0, 1000, 4),  # all of them
    (15, 19, 200, 10_000, 0),  # too few calls now
    (300, 1000, 0, 19, 0),  # too few calls before
]


@pytest.mark.parametrize(("failed", "calls", "past", "past_calls", "level"), LEVELS)
def test_shades_follow_the_interval_and_the_size(
    failed: int, calls: int, past: int, past_calls: int, level: int
) -> None:
    assert excess(Side(failed, calls), Side(past, past_calls)).level == level


def test_a_cell_of_eighty_is_shaded_for_what_one_of_eighty_would_not_show_by_chance() -> None:
    alone = excess(Side(36, 1000), Side(200, 10_000))
    assert alone.level == 1
    assert replace(alone, among=80).level == 0
    assert (alone.low, alone.high) == (replace(alone, among=80).low, alone.high)
    kinds = {f"kind_{number}": 20 for number in range(9)}
    past = {HAIKU: counts(10_000, **dict.fromkeys(kinds, 200), truncated=200)}
    row = build_matrix({HAIKU: counts(1000, **kinds, truncated=33)}, past).rows[0]
    assert {cell.among for _, cell in row.cells} == {10}
    assert [cell.level for _, cell in row.cells] == [0] * 10


def test_a_model_without_a_past_has_no_baseline() -> None:
    found = excess(Side(9, 30), Side(0, 0))
    assert (found.a.share, found.b.share, found.difference) == (0.3, None, None)
    assert found.shade == ""


def test_the_worst_model_and_the_kind_that_rose_most_come_first() -> None:
    found = matrix(gpt=counts(500, not_json=5), haiku=counts(500, truncated=60, not_json=15))
    assert [row.model for row in found.rows] == ["haiku", "gpt"]
    assert [column.kind for column in found.columns] == ["truncated", "not_json"]
    cells = [cell for _, cell in found.rows[0].cells]
    assert [cell.a.good for cell in cells] == [60, 15]
    assert (cells[0].level, cells[1].level) == (3, 0)


def test_margins_add_up_rows_and_columns() -> None:
    found = matrix(gpt=counts(500, not_json=5), haiku=counts(500, truncated=60, not_json=15))
    assert [row.total.a.good for row in found.rows] == [75, 5]
    assert [column.cell.a.good for column in found.columns] == [60, 20]
    assert (found.total.a.good, found.total.a.trials) == (80, 1000)


def test_models_without_a_call_are_no_rows() -> None:
    assert matrix(gpt=counts(0)).rows == []
    assert matrix().columns == []


def test_many_kinds_share_the_last_column() -> None:
    found = matrix(haiku=counts(900, **dict.fromkeys(FAILURE_KINDS, 3)))
    assert len(found.columns) == MOST_KINDS + 1
    last = found.columns[-1]
    assert (last.kind, last.label) == ("", "others")
    assert sum(column.cell.a.good for column in found.columns) == 3 * len(FAILURE_KINDS)


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


def test_the_sentence_names_the_worst_model_and_its_kind() -> None:
    line = summarise_matrix(
        matrix(gpt=counts(500, not_json=5), haiku=counts(500, truncated=60, not_json=15))
    )
    assert line.tone == "bad"
    assert plain(line.sentence) == (
        "anthropic/haiku fails 15.0 % of 500 calls (+10.0 pt), mostly truncated."
    )
    assert line.row is not None


def test_the_sentence_says_when_all_is_as_usual() -> None:
    line = summarise_matrix(matrix(gpt=counts(500, not_json=5), haiku=counts(9)))
    assert line.tone == "good"
    assert line.sentence == "The model is within its baseline."
    assert line.beside == "1 model with too few calls to compare, now or in the baseline week."


def test_the_sentence_says_when_nothing_can_be_said() -> None:
    assert summarise_matrix(matrix()).sentence == "No calls in this range."
    few = summarise_matrix(matrix(gpt=counts(5)))
    assert few.sentence == "Not enough data to compare models."
