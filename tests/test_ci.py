"""A failed test of `.ci/run` gets one more try, alone; flaky ones are named."""

import sys
import time
from pathlib import Path

import pytest

from tests.ci import (
    Step,
    closing_line,
    counts_in,
    repeat_failed,
    run_all,
    steps_alone,
    steps_beside,
)
from tests.conftest import outside_of_half
from tests.pythons import interpreters

SUITE = """
import pathlib
import pytest

def test_good(): ...
def test_broken(): assert False
def test_flaky():
    mark = pathlib.Path(__file__).with_suffix(".tried")
    was_tried = mark.exists()
    mark.touch()
    assert was_tried
@pytest.mark.skip
def test_skipped(): ...
"""
OPTIONS = ["-c", "/dev/null", "-p", "no:django", "-p", "no:valkey", "-p", "no:randomly", "-q"]


def step_of(folder: Path, suite: str) -> Step:
    path = folder / "test_it.py"
    path.write_text(suite)
    return Step("it", [sys.executable, "-m", "pytest", *OPTIONS, str(path)])


@pytest.mark.slow
def test_a_failed_test_runs_again_and_is_counted_by_its_last_result(tmp_path: Path) -> None:
    (result,) = run_all(tmp_path, [step_of(tmp_path, SUITE)], [])
    assert [name.rpartition("::")[2] for name in result.flaky] == ["test_flaky"]
    assert [name.rpartition("::")[2] for name in result.failed] == ["test_broken"]
    assert result.is_bad
    assert closing_line([result]) == "2 passed, 1 failed, 1 skipped"


@pytest.mark.slow
def test_a_flaky_test_alone_does_not_fail_the_run(tmp_path: Path) -> None:
    suite = SUITE.replace("assert False", "...")
    (result,) = run_all(tmp_path, [], [step_of(tmp_path, suite)])
    assert not result.is_bad
    assert closing_line([result]) == "3 passed, 0 failed, 1 skipped"


@pytest.mark.slow
@pytest.mark.parametrize(
    "suite", ["import nowhere", "def test_hangs(): __import__('time').sleep(60)"]
)
def test_what_is_no_failed_test_fails_the_run(suite: str, tmp_path: Path) -> None:
    (result,) = run_all(tmp_path, [step_of(tmp_path, suite)], [], minutes=0.1)
    assert result.is_bad
    assert closing_line([result]) == "0 passed, 1 failed, 0 skipped"


@pytest.mark.slow
def test_a_repetition_that_ends_early_clears_nobody(tmp_path: Path) -> None:
    (result,) = run_all(tmp_path, [step_of(tmp_path, SUITE)], [])
    result.failed = ["test_it.py::test_broken"]
    (tmp_path / "test_it.py").write_text("import os; os._exit(3)")
    again = repeat_failed(tmp_path, time.monotonic() + 60, result)
    assert again.failed == ["test_it.py::test_broken"]


def test_endings_of_several_runs_are_added_up() -> None:
    output = """
== 1 failed, 12 passed, 2 skipped in 3.10s ==
7 passed, 40 subtests passed in 61.00s (0:01:01)
"""
    assert counts_in(output) == {"passed": 19, "failed": 1, "skipped": 2, "subtests passed": 40}


@pytest.mark.slow
def test_two_turns_run_both_halves_of_the_slow_tests_the_model_and_another_python() -> None:
    turns = [{step.name: step for step in steps_alone(n) + steps_beside(n)} for n in (4, 5)]
    assert [turn["test-all"].command[-1] for turn in turns] == ["ARGS=--half=0", "ARGS=--half=1"]
    assert ["test-model" in turn for turn in turns] == [True, False]
    assert not interpreters() or "test-pythons" in turns[1]
    for name in ("test-faults", "test-browser", "test-docs", "check"):
        assert all(name in turn for turn in turns)


def test_each_slow_test_is_in_one_half_and_each_fast_one_in_both(
    request: pytest.FixtureRequest,
) -> None:
    everything = set(request.session.items)
    halves = [set(everything), set(everything)]
    for number, half in enumerate(halves):
        half -= set(outside_of_half(number, list(everything)))
    assert halves[0] | halves[1] == everything
    fast = {item for item in everything if not item.get_closest_marker("slow")}
    assert halves[0] & halves[1] == fast
