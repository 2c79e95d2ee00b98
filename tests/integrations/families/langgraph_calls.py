"""A LangGraph whose node `planner` asks until it has a plan."""

from typing import Any, TypedDict

from cell import USER, Cell
from langchain_calls import planner
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    """What the graph hands on."""

    plan: Any
    left: int


def ask(cell: Cell) -> None:
    """Play a cell."""
    chain = planner(cell)

    def plan(state: State) -> State:
        try:
            made = chain.invoke(USER)
        except Exception:
            if state["left"] == 1:
                raise
            made = None
        return {"plan": made, "left": state["left"] - 1}

    def way(state: State) -> str:
        return END if state["plan"] is not None or not state["left"] else "planner"

    graph = StateGraph(State)
    graph.add_node("planner", plan)
    graph.add_edge(START, "planner")
    graph.add_conditional_edges("planner", way)
    graph.compile().invoke({"plan": None, "left": cell.calls})
