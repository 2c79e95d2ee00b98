"""Spoiled answers are what they are meant to be, by the product's own parser."""

import pytest

from agents.demo.calls import answers_to, good_answers, spoiled_answers
from agents.demo.story import STORY, Scenario
from failsoft.events import ParseErrorType
from failsoft.plans.validation import validate_payload
from failsoft.retry.answers import WRITTEN, Misunderstood, PlannerSchema, Understood

SCENARIOS = STORY.scenarios
every_schema = pytest.mark.parametrize("schema", WRITTEN)
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda item: item.goal)


@every_scenario
def test_plan_of_every_scenario_keeps_the_contract(scenario: Scenario) -> None:
    assert validate_payload(scenario.plan, strict=False) == []


@every_schema
@every_scenario
def test_good_answers_are_understood_alike(schema: PlannerSchema, scenario: Scenario) -> None:
    readings = [written.reading for written in good_answers(schema, scenario)]
    values = [item.value for item in readings if isinstance(item, Understood)]
    assert len(values) == 3
    assert values[0] == values[1] == values[2]


@every_schema
@every_scenario
def test_no_spoiled_answer_is_understood(schema: PlannerSchema, scenario: Scenario) -> None:
    spoiled = list(spoiled_answers(schema, scenario))
    assert [item.text for item in spoiled if isinstance(item.reading, Understood)] == []


@every_schema
@every_scenario
def test_every_kind_of_failure_occurs_and_is_located(
    schema: PlannerSchema, scenario: Scenario
) -> None:
    spoiled = list(spoiled_answers(schema, scenario))
    assert {item.kind for item in spoiled} == set(ParseErrorType) - {ParseErrorType.OTHER}
    for item in spoiled:
        assert isinstance(item.reading, Misunderstood)
        first = item.reading.errors[0]
        assert first.message
        assert first.line is not None
        assert first.column is not None


@every_schema
@every_scenario
def test_answers_are_cut_off_where_the_limit_is(schema: PlannerSchema, scenario: Scenario) -> None:
    answers = answers_to(schema, scenario)
    cut = [item for item in answers if item.kind is ParseErrorType.TRUNCATED]
    assert {item.finish_reason for item in cut} == {"length"}
