"""A tool that a project denies is neither offered to its planners nor taken in an order."""

import pytest

from agents.goals.policies import offers_for
from agents.goals.requests import RequestRefusedError
from plans.tools.registry import set_allowed
from tests.agents.conftest import Planner

pytestmark = pytest.mark.django_db


def test_s29_planners_are_not_told_of_a_denied_tool(planner: Planner) -> None:
    set_allowed(planner.project.pk, "echo", allowed=False)
    goal = planner.submit()
    names = [offer.name for offer in offers_for(goal)]
    assert "echo" not in names
    assert "template" in names


def test_s29_an_order_that_names_a_denied_tool_is_refused_with_its_place(planner: Planner) -> None:
    set_allowed(planner.project.pk, "echo", allowed=False)
    with pytest.raises(RequestRefusedError) as refused:
        planner.submit(tools=["template", "echo"])
    assert [error.path for error in refused.value.errors] == ["/tools/1"]
