"""S0-47 to S0-51: the routes of the graph."""

import re
from itertools import product
from pathlib import Path

import pytest

from agents.core.routing import (
    ROUTES,
    Node,
    route_after_act,
    route_after_next_step,
)
from agents.core.task_state import Phase, Status, TaskState

TESTS = Path(__file__).parents[2]


def test_s0_47_failed_is_answered() -> None:
    assert route_after_next_step(TaskState(status=Status.FAILED)) == "respond_node"


def test_s0_48_a_question_is_asked() -> None:
    assert (
        route_after_next_step(TaskState(status=Status.WAITING_USER)) == "respond_node"
    )


def test_s0_49_anything_else_is_executed() -> None:
    assert (
        route_after_next_step(TaskState(status=Status.RUNNING)) == "execute_step_node"
    )


@pytest.mark.parametrize(("status", "phase"), list(product(Status, Phase)))
def test_s0_50_every_route_leads_to_a_wired_node(status: Status, phase: Phase) -> None:
    state = TaskState(status=status, pdca_phase=phase)

    for route in ROUTES.values():
        following = route(state)
        assert following in ROUTES or following is Node.END


@pytest.mark.parametrize("status", list(Status))
def test_s0_50_every_walk_comes_to_an_end(status: Status) -> None:
    state, node = TaskState(status=status), Node.ACT
    walked: list[Node] = []

    while node is not Node.END and len(walked) < len(Node):
        walked.append(node)
        node = ROUTES[node](state)

    assert node is Node.END or status is Status.RUNNING


def test_s0_50_a_running_goal_is_planned_again_after_act() -> None:
    assert route_after_act(TaskState()) is Node.NEXT_STEP
    assert route_after_act(TaskState(status=Status.COMPLETED)) is Node.RESPOND


def test_s0_51_no_test_expects_a_parse_failure_to_wait_for_the_user() -> None:
    expecting = re.compile(
        r"def test_\w*(?:parse_fail|invalid|garbage)\w*(?:waits_for|asks_the)_user"
    )
    files = [path for path in TESTS.rglob("test_*.py") if path != Path(__file__)]

    assert files
    assert [
        path.name for path in files if expecting.search(path.read_text("utf-8"))
    ] == []
