"""What the person is told, made of what was done."""

import pytest

from failsoft.actions.entries import ENTRIES
from failsoft.actions.results import ALL_FAILED, summarise


@pytest.mark.parametrize(
    ("applied", "summary"),
    [
        (["create", "complete"], "Created 1, completed 1"),
        (["complete", "create", "create"], "Created 2, completed 1"),
        (["archive"], "Archived 1"),
        (["update", "archive"], "Updated 1, archived 1"),
        ([], "Nothing was changed"),
    ],
)
def test_s4_20_a_full_success_is_told_without_a_note(applied: list[str], summary: str) -> None:
    assert summarise(applied, 0, ENTRIES) == summary


def test_s4_21_and_s4_34_failures_of_both_layers_are_one_number() -> None:
    assert summarise(["create"], 1 + 1, ENTRIES) == "Created 1 (2 couldn't be processed)"


def test_s4_23_the_text_for_a_total_failure_is_a_statement() -> None:
    assert "?" not in ALL_FAILED
    assert "couldn't be processed" in ALL_FAILED
