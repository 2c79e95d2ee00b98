"""The bench of the real model: what it counts, on a scripted one."""

from itertools import chain
from typing import Any

from bench.model import GOALS, Planner, run
from tests.scripted import ScriptedProvider

PLAN = '{"steps": [{"step_id": "step_1", "tool": {"name": "echo", "args": {}}}]}'
BAD = "no plan"
# What each of four goals is answered: at once, after a retry, never, not at all.
COURSE: list[list[Any]] = [[PLAN], [BAD, PLAN], [BAD, BAD], [{"error": "refused"}]]


def test_there_are_forty_fixed_goals_all_different() -> None:
    goals = GOALS.read_text(encoding="utf-8").splitlines()

    assert len(goals) == len(set(goals)) == 40


def test_s1_50_the_report_compares_with_and_without_retry() -> None:
    planner = Planner(ScriptedProvider(chain(*COURSE)), "scripted", retries=2)

    report = run(planner, ["one", "two", "three", "four"], verbose=False)

    assert [" ".join(line.split()) for line in report[:4]] == [
        "first pass (no retry) 1/4 = 25.0% [4.6%, 69.9%]",
        "recovered by retries 1/4 = 25.0% [4.6%, 69.9%]",
        "success after retries 2/4 = 50.0% [15.0%, 85.0%] goal > 90 %",
        "retry success 1/3 = 33.3% [6.1%, 79.2%] goal > 60 %",
    ]
    assert report[-1].endswith("not_json 3, provider_error 1")


def test_no_failed_first_answer_is_no_rate_of_retries() -> None:
    planner = Planner(ScriptedProvider([PLAN]), "scripted", retries=2)

    assert "no runs" in run(planner, ["one"], verbose=False)[3]
