"""The requirements document and the listing of the tests that prove its rows."""

from collections import Counter
from pathlib import Path

import pytest

from tests.requirements import (
    DOCUMENT,
    HERE,
    Row,
    listing,
    main,
    parse_rows,
    proofs_by_row,
    rows_named,
    summary,
)

ROWS = parse_rows(DOCUMENT.read_text(encoding="utf-8"))


def test_every_row_of_the_document_is_read() -> None:
    assert Counter(row.section for row in ROWS) == {
        "S0": 62,
        "S1": 92,
        "S2": 50,
        "S3": 54,
        "S4": 45,
        "M": 9,
    }
    assert len(ROWS) == 312


def test_row_ids_are_unique() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)


def test_rows_of_a_section_are_numbered_without_a_gap() -> None:
    for section in ("S0", "S1", "S2", "S3", "S4", "M"):
        numbers = [int(row.id.partition("-")[2]) for row in ROWS if row.section == section]
        assert numbers == list(range(1, len(numbers) + 1))


def test_every_row_has_a_statement_and_a_check() -> None:
    assert [row.id for row in ROWS if not row.statement.strip() or not row.check.strip()] == []


def test_a_row_keeps_its_verbatim_strings() -> None:
    row = next(row for row in ROWS if row.id == "S0-42")
    assert row == Row("S0-42", "M", 'Event B field `reason = "next_step_parse_failed"`', "verbatim")


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("test_s0_28_one_event_per_invalid_attempt", ["S0-28"]),
        # Several rows: with and without the joining word.
        ("test_s0_13_and_s0_14_failed_in_plan", ["S0-13", "S0-14"]),
        ("test_s0_13_s0_14_failed_in_plan", ["S0-13", "S0-14"]),
        ("test_s2_22_to_s2_25_result_rows", ["S2-22", "S2-25", "S2-23", "S2-24"]),
        ("test_m_8_batch_is_stored_once", ["M-8"]),
        # The row may stand at the end, and alone.
        ("test_batches_m_8", ["M-8"]),
        # No rows: a word that ends in m or s, a section that does not exist.
        ("test_item_8_is_kept", []),
        ("test_runs_0_times", []),
        ("test_s9_1_is_no_row", []),
    ],
)
def test_rows_are_read_from_a_test_name(name: str, ids: list[str]) -> None:
    assert rows_named(name) == ids


def test_tests_are_found_in_functions_and_in_classes(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        "def test_s0_1_a(): ...\n"
        "def helps_s0_3(): ...\n"
        "class TestMore:\n"
        "    async def test_s0_1_and_s0_2_b(self): ...\n",
        encoding="utf-8",
    )
    assert proofs_by_row(tmp_path.glob("*.py"), tmp_path) == {
        "S0-1": ["test_one.py::test_s0_1_a", "test_one.py::test_s0_1_and_s0_2_b"],
        "S0-2": ["test_one.py::test_s0_1_and_s0_2_b"],
    }


def test_listing_shows_each_row_with_its_tests_and_counts_the_others() -> None:
    rows = [Row("S0-1", "M", "first", "see"), Row("S0-2", "M", "second", "see")]
    tests = {"S0-1": ["test_one.py::test_s0_1_a"]}
    assert list(listing(rows, tests)) == [
        "S0-1   M  first",
        "         test_one.py::test_s0_1_a",
        "S0-2   M  second",
    ]
    assert list(summary(rows, tests)) == [
        "S0: 2 rows, 1 without a test",
        "all: 2 rows, 1 without a test",
    ]


@pytest.mark.slow
def test_command_lists_all_rows_or_only_the_missing_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    everything = capsys.readouterr().out
    assert main(["--missing"]) == 0
    missing = capsys.readouterr().out
    assert "S0-28  M  " in everything
    assert "all: 312 rows" in missing
    assert "::test_" not in missing


@pytest.mark.slow
def test_no_test_names_a_row_that_does_not_exist() -> None:
    known = {row.id for row in ROWS}
    named = proofs_by_row(HERE.rglob("test_*.py"), HERE.parent)
    # This file names rows of its own making, inside strings only.
    assert {row_id: tests for row_id, tests in named.items() if row_id not in known} == {}
