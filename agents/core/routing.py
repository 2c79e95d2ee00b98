"""The graph of the cycle: which node follows, decided from the state alone (s0)."""

from collections.abc import Callable
from enum import StrEnum

from agents.core.task_state import Status, TaskState


class Node(StrEnum):
    """Every node of the graph; `END` is not one that does anything."""

    NEXT_STEP = "next_step_node"
    EXECUTE_STEP = "execute_step_node"
    CHECK = "check_node"
    ACT = "act_node"
    RESPOND = "respond_node"
    END = "end"


def route_after_next_step(state: TaskState) -> Node:
    """Failed or waiting for the user: respond; otherwise execute (S0-47 to S0-49)."""
    if state.status in (Status.FAILED, Status.WAITING_USER):
        return Node.RESPOND
    if state.status.is_terminal:
        return Node.RESPOND
    return Node.EXECUTE_STEP


def route_after_execute_step(state: TaskState) -> Node:
    """What was executed is checked, unless the goal ended meanwhile."""
    return Node.RESPOND if state.status.is_terminal else Node.CHECK


def route_after_check(state: TaskState) -> Node:
    """The check's finding is acted upon, unless it ended the goal."""
    return Node.RESPOND if state.status.is_terminal else Node.ACT


def route_after_act(state: TaskState) -> Node:
    """Plan again while the goal runs; otherwise tell how it ended (S0-50)."""
    return Node.NEXT_STEP if state.status is Status.RUNNING else Node.RESPOND


def route_after_respond(state: TaskState) -> Node:
    """Nothing follows the answer to the person."""
    del state
    return Node.END


ROUTES: dict[Node, Callable[[TaskState], Node]] = {
    Node.NEXT_STEP: route_after_next_step,
    Node.EXECUTE_STEP: route_after_execute_step,
    Node.CHECK: route_after_check,
    Node.ACT: route_after_act,
    Node.RESPOND: route_after_respond,
}
