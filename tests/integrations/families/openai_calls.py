"""A planner of one's own on the OpenAI SDK."""

from typing import Any

from cell import MESSAGES, MODEL, Cell, ask_until_plan
from openai import OpenAI
from schema import PLAN

TOOL = {"type": "function", "function": {"name": "Plan", "parameters": PLAN}}


def ask(cell: Cell, sdk: type[OpenAI] = OpenAI) -> None:
    """Play a cell."""
    client = sdk(base_url=f"{cell.url}/v1", api_key="scripted", max_retries=0, timeout=cell.timeout)
    more: dict[str, Any] = {"tools": [TOOL]} if cell.tools else {}

    def call() -> str | None:
        if cell.stream:
            return _stream(client, more)
        answer = client.chat.completions.create(model=MODEL, messages=MESSAGES, **more)
        message = answer.choices[0].message
        return message.tool_calls[0].function.arguments if cell.tools else message.content

    ask_until_plan(cell, call)


def _stream(client: OpenAI, more: dict[str, Any]) -> str:
    pieces = client.chat.completions.create(
        model=MODEL, messages=MESSAGES, stream=True, stream_options={"include_usage": True}, **more
    )
    deltas = [choice.delta for piece in pieces for choice in piece.choices]
    return "".join(delta.content or "" for delta in deltas)
