"""S1: every attempt in the log and in the metrics."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from config.logging import json_formatter
from tests.agents.conftest import PLAN, Api, Planner
from tests.agents.test_s0_metrics import value

PROSE = "Of course! First I would say hello."
ATTEMPTS = "failsoft_plan_attempts_total"
RECOVERED = "failsoft_plan_retries_recovered_total"
FAILED = "failsoft_plan_retries_failed_total"
Lines = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """The lines of an event as they are written: one JSON object each."""
    caplog.set_level(logging.INFO)
    formatter = json_formatter()

    def read(event: str) -> list[dict[str, Any]]:
        written = [json.loads(formatter.format(record)) for record in caplog.records]
        return [line for line in written if line["event"] == event]

    return read


def run(planner: Planner, *replies: Any, **order: Any) -> None:
    """A goal in mode plan."""
    planner.run(*replies, goal="Say hello", mode="plan", **order)


def test_s1_14_and_s1_15_and_s1_65_each_attempt_is_a_line_with_number_intent_and_error(
    planner: Planner, lines: Lines
) -> None:
    run(planner, PROSE, PLAN, correlation_id="case-7")

    first, second = lines("attempt_ended")
    assert (first["attempt"], first["max_attempts"]) == (1, 2)
    assert first["intent"] == "Say hello"
    assert first["error_type"] == "not_json"
    assert first["error"].startswith("expected ")
    assert (second["attempt"], second["error"]) == (2, None)
    assert {line["correlation_id"] for line in (first, second)} == {"case-7"}


def test_s1_16_attempts_are_told_at_info_and_failures_at_warning(
    planner: Planner, lines: Lines
) -> None:
    run(planner, PROSE, PLAN)

    assert [line["level"] for line in lines("attempt_ended")] == ["warning", "info"]


def test_s1_89_a_recovered_retry_is_told_with_its_number(planner: Planner, lines: Lines) -> None:
    run(planner, PROSE, PROSE, PLAN, retry={"max_retries": 3})

    found = [(line["attempt"], line["recovered"]) for line in lines("attempt_ended")]
    assert found == [(1, False), (2, False), (3, True)]


def test_s1_89_a_first_answer_has_nothing_to_recover(planner: Planner, lines: Lines) -> None:
    run(planner, PLAN)

    assert [line["recovered"] for line in lines("attempt_ended")] == [False]


def test_s1_16_and_s1_90_a_plan_that_was_not_found_is_a_warning(
    planner: Planner, lines: Lines
) -> None:
    run(planner, PROSE, PROSE)

    (line,) = lines("plan_generation_failed")
    assert (line["level"], line["attempts"]) == ("warning", 2)
    assert line["last_error"] == "not_json"


def test_s1_91_a_stub_is_a_warning(planner: Planner, lines: Lines) -> None:
    run(planner, PROSE, PROSE, retry={"use_stub_fallback": True})

    (line,) = lines("stub_fallback")
    assert (line["level"], line["attempts"]) == ("warning", 2)


def test_s1_14_a_secret_in_an_intent_is_not_logged(planner: Planner, lines: Lines) -> None:
    secret = "sk-" + "a1B2" * 12

    planner.run(PLAN, goal=f"Echo the key {secret}", mode="plan")

    (line,) = lines("attempt_ended")
    assert secret not in line["intent"]
    assert "[REDACTED" in line["intent"]


METERED = [
    # replies, and by how much attempts, recovered and failed retries move
    ([PLAN], (1, 0, 0)),
    ([PROSE, PLAN], (2, 1, 0)),
    ([PROSE, PROSE], (2, 0, 1)),
    ([{"error": "refused"}], (1, 0, 0)),
]


@pytest.mark.parametrize(("replies", "moves"), METERED)
def test_s1_17_and_s1_19_and_s1_65_the_counters_of_a_model_move_as_scripted(
    planner: Planner, api: Api, replies: list[Any], moves: tuple[int, int, int]
) -> None:
    run(planner, *replies)

    counted = tuple(value(api, name) for name in (ATTEMPTS, RECOVERED, FAILED))
    assert counted == moves
