"""A language model of DSPy, by OpenInference."""

import dspy
from cell import MESSAGES, MODEL, Cell, ask_until_plan, serve, set_up
from openinference.instrumentation.dspy import DSPyInstrumentor
from schema import PLAN

TOOL = {"type": "function", "function": {"name": "Plan", "parameters": PLAN}}

flush = set_up()
DSPyInstrumentor().instrument()


def ask(cell: Cell) -> None:
    """Play a cell."""
    lm = dspy.LM(
        f"openai/{MODEL}",
        api_base=f"{cell.url}/v1",
        api_key="scripted",
        cache=False,
        num_retries=0,
        timeout=cell.timeout,
    )

    def call() -> str | None:
        (answer, *_) = lm(messages=MESSAGES, **({"tools": [TOOL]} if cell.tools else {}))
        return answer if isinstance(answer, str) else answer["text"]

    ask_until_plan(cell, call)


serve(ask, flush)
