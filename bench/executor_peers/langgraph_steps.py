"""LangGraph with its PostgresSaver: a graph whose node is gone through N times."""

import sys
import time
import uuid
from typing import TypedDict

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    """How many steps were taken."""

    taken: int


def main(url: str, steps: int) -> None:
    """Print the seconds that N steps took, each with its checkpoint committed."""

    def step(state: State) -> State:
        return {"taken": state["taken"] + 1}

    graph = StateGraph(State)
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: "step" if state["taken"] < steps else END)
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        compiled = graph.compile(checkpointer=saver)
        for count in (10, steps):
            config = {
                "configurable": {"thread_id": str(uuid.uuid4())},
                "recursion_limit": steps + 20,
            }
            begun = time.perf_counter()
            found = compiled.invoke({"taken": steps - count}, config, durability="sync")
            taken = time.perf_counter() - begun
        assert found["taken"] == steps  # noqa: S101 - what is measured is true
    print(taken)  # noqa: T201 - read by the benchmark


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
