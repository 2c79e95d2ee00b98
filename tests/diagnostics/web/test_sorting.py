"""A table in the order of a column: figures from the largest, names from the first."""

from django.http import QueryDict

from diagnostics.web.sorting import ColumnSort

ROWS = [("b", 1), ("a", None), ("c", 3), ("d", 1)]


def order(text: str) -> str:
    sort = ColumnSort.read({"sort": text})
    at = 0 if sort.column == "model" else 1
    return "".join(row[0] for row in sort.order(ROWS, lambda row: row[at]))


def test_figures_begin_with_the_largest_and_names_with_the_first() -> None:
    assert order("model") == "abcd"
    assert order("-model") == "dcba"
    assert order("calls")[0] == "c"


def test_rows_without_a_figure_are_last_and_equal_ones_stay_as_they_are() -> None:
    assert order("calls") == "cbda"
    assert order("-calls") == "bdca"


def test_a_head_sorts_by_its_column_and_then_turns_it_and_leaves_the_page() -> None:
    params = QueryDict("range=7d&sort=calls&page=3&cursor=x")
    model, calls = ColumnSort.read(params.dict()).heads(
        {"model": "Model", "calls": "Calls"}, params
    )
    assert (calls["direction"], calls["query"]) == ("descending", "?range=7d&sort=-calls")
    assert (model["direction"], model["query"]) == ("", "?range=7d&sort=model")
    (turned,) = ColumnSort.read({"sort": "-calls"}).heads({"calls": "Calls"}, QueryDict())
    assert (turned["direction"], turned["query"]) == ("ascending", "?sort=calls")
