"""LangChain's structured output, by itself and as a node of a LangGraph."""

import os
from typing import Any

from cell import MODEL, USER, Cell
from langchain_openai import ChatOpenAI
from opentelemetry import trace
from plan import Plan


def planner(cell: Cell) -> Any:
    """Return what makes a plan of a text."""
    model = ChatOpenAI(
        model=MODEL,
        base_url=f"{cell.url}/v1",
        api_key="scripted",
        max_retries=0,
        timeout=cell.timeout,
        streaming=cell.stream,
        stream_usage=cell.stream,
    )
    return model.with_structured_output(Plan, method=os.environ.get("METHOD", "function_calling"))


def ask(cell: Cell) -> None:
    """Play a cell."""
    chain = planner(cell)
    with trace.get_tracer("agent").start_as_current_span("agent"):
        for left in reversed(range(cell.calls)):
            try:
                plan = chain.invoke(USER)
            except Exception:
                if not left:
                    raise
            else:
                if plan is not None:
                    return
