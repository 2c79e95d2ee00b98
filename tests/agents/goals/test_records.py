"""The record of a goal is what its model tells of it."""

import json

import pytest
from django.core.serializers.json import DjangoJSONEncoder
from jsonschema import Draft202012Validator

from agents.goals.records import ActionsResource, GoalResource
from tests.agents.conftest import FINISH, Planner

ACTIONS = set(ActionsResource.model_fields)


@pytest.mark.parametrize(
    ("replies", "order", "absent"),
    [
        ([FINISH], {}, ACTIONS),
        (["no", "no"], {}, ACTIONS),
        ([FINISH], {"mode": "actions", "toolset": "entries"}, set()),
    ],
    ids=["planned", "failed", "actions"],
)
def test_no_key_of_a_record_is_missing_or_unknown(
    planner: Planner, replies: list[str], order: dict[str, str], absent: set[str]
) -> None:
    record = planner.run(*replies, **order)
    schema = GoalResource.model_json_schema(mode="serialization")
    assert set(record) == set(schema["properties"]) - absent
    schema["required"] = sorted(set(schema["required"]) - absent)
    Draft202012Validator(schema).validate(json.loads(json.dumps(record, cls=DjangoJSONEncoder)))
