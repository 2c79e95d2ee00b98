"""The OpenAI SDK under LangSmith's wrapper, exported by OTLP."""

import openai_calls
from cell import Cell, serve, set_up
from langsmith import traceable
from langsmith.run_trees import get_cached_client
from langsmith.wrappers import wrap_openai
from openai import OpenAI

flush = set_up()


def wrapped(**words: object) -> OpenAI:
    """Return the SDK as LangSmith wraps it."""
    return wrap_openai(OpenAI(**words))


@traceable(name="agent")
def ask(cell: Cell) -> None:
    """Play a cell."""
    openai_calls.ask(cell, wrapped)


def send() -> None:
    """Send what is pending, here and in the client."""
    get_cached_client().flush()
    flush()


serve(ask, send)
