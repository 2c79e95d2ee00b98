"""Spoiled answers are what they are meant to be, by the product's own parser."""

from random import Random

import pytest

from agents.demo.answers import DemoAnswer, good_answers, sort_spoiled, spoiled_answers
from agents.demo.story import STORY, Scenario, plan_of
from failsoft.events import ParseErrorType, ValidationErrorItem
from failsoft.plans.validation import validate_payload
from failsoft.retry.answers import WRITTEN, Misunderstood, PlannerSchema, Understood

SCENARIOS = STORY.scenarios
every_schema = pytest.mark.parametrize("schema", WRITTEN)
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda item: item.goal)


@every_scenario
def test_plan_of_every_scenario_keeps_the_contract(scenario: Scenario) -> None:
    assert validate_payload(plan_of(scenario), strict=False) == []


@every_schema
@every_scenario
def test_good_answers_are_understood_alike(schema: PlannerSchema, scenario: Scenario) -> None:
    readings = [written.reading for written in good_answers(schema, scenario)]
    values = [item.value for item in readings if isinstance(item, Understood)]
    assert len(values) == 3
    assert values[0] == values[1] == values[2]


@every_scenario
def test_last_next_step_is_the_end(scenario: Scenario) -> None:
    written = next(good_answers(PlannerSchema.NEXT_STEP, scenario, cycle=len(scenario.steps) + 1))
    assert isinstance(written.reading, Understood)
    assert written.reading.value == {"kind": "finish", "answer": scenario.answer}


@every_schema
@every_scenario
def test_no_spoiled_answer_is_understood(schema: PlannerSchema, scenario: Scenario) -> None:
    spoiled = list(spoiled_answers(schema, scenario, Random(1)))
    assert [item.text for item in spoiled if isinstance(item.reading, Understood)] == []


@every_schema
def test_every_kind_of_failure_occurs_and_is_located(schema: PlannerSchema) -> None:
    by_kind = sort_spoiled(schema, SCENARIOS, Random(1))
    assert set(by_kind) == set(ParseErrorType) - {ParseErrorType.OTHER}
    for written in (item for items in by_kind.values() for item in items):
        first = errors_of(written)[0]
        assert first.message
        assert first.line is not None
        assert first.column is not None


@every_schema
def test_answers_are_cut_off_where_the_limit_is(schema: PlannerSchema) -> None:
    cut = sort_spoiled(schema, SCENARIOS, Random(1))[ParseErrorType.TRUNCATED]
    assert {item.finish_reason for item in cut} == {"length"}


def errors_of(written: DemoAnswer) -> list[ValidationErrorItem]:
    assert isinstance(written.reading, Misunderstood)
    return list(written.reading.errors)
