"""S0-47 to S0-51: the routes of the graph."""

import re
from itertools import product
from pathlib import Path

import pytest

from agents.cycle.running import ROUTES, CycleNode, route_after_act, route_after_next_step
from agents.goals.state import Phase, Status, TaskState
from tests.requirements import names_in

TESTS = Path(__file__).parents[2]


def test_s0_47_failed_is_answered() -> None:
    assert route_after_next_step(TaskState(status=Status.FAILED)) == "respond_node"


def test_s0_48_a_question_is_asked() -> None:
    assert route_after_next_step(TaskState(status=Status.WAITING_USER)) == "respond_node"


def test_s0_49_anything_else_is_executed() -> None:
    assert route_after_next_step(TaskState(status=Status.RUNNING)) == "execute_step_node"


@pytest.mark.parametrize(("status", "phase"), list(product(Status, Phase)))
def test_s0_50_every_route_leads_to_a_wired_node(status: Status, phase: Phase) -> None:
    state = TaskState(status=status, pdca_phase=phase)

    for route in ROUTES.values():
        following = route(state)
        assert following in ROUTES or following is CycleNode.END


@pytest.mark.parametrize("status", list(Status))
def test_s0_50_every_walk_comes_to_an_end(status: Status) -> None:
    state, node = TaskState(status=status), CycleNode.ACT
    walked: list[CycleNode] = []

    while node is not CycleNode.END and len(walked) < len(CycleNode):
        walked.append(node)
        node = ROUTES[node](state)

    assert node is CycleNode.END or status is Status.RUNNING


def test_s0_50_a_running_goal_is_planned_again_after_act() -> None:
    assert route_after_act(TaskState()) is CycleNode.NEXT_STEP
    assert route_after_act(TaskState(status=Status.COMPLETED)) is CycleNode.RESPOND


FAULT = re.compile(r"parse_fail|parse_invalid|invalid|garbage|not_json|unreadable")
ASKING = re.compile(
    r"wait(?:s|ing)?_(?:for_)?(?:the_)?(?:user|person)"
    r"|asks?_(?:\w+_)?(?:user|person|question)|fallback_question"
)
DENIED = re.compile(r"(?:^|_)(?:no|not|never|without|instead_of)_(?!json)")


def expects_a_question(test_name: str) -> bool:
    """Whether a test, by its name, wants a person to be asked after a parse failure."""
    words = (FAULT.search(test_name), ASKING.search(test_name))
    return all(words) and not DENIED.search(test_name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("test_parse_failure_asks_fallback_question", True),
        ("test_invalid_json_goes_to_waiting_user", True),
        ("test_not_json_waits_for_user", True),
        ("test_garbage_asks_the_user", True),
        ("test_a_parse_failure_never_waits_for_the_user", False),
        ("test_not_json_is_no_question_that_asks_the_user", False),
        ("test_a_secret_waits_for_the_user", False),
    ],
)
def test_names_that_expect_a_question_are_recognised(name: str, expected: bool) -> None:
    assert expects_a_question(name) is expected


@pytest.mark.slow
def test_s0_51_no_test_expects_a_parse_failure_to_wait_for_the_user() -> None:
    names = {f"{path.name}::{name}" for path in TESTS.rglob("test_*.py") for name in names_in(path)}

    assert len(names) > 1_000
    assert {name for name in names if expects_a_question(name)} == set()
