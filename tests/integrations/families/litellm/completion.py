"""LiteLLM's completion under its own callback."""

import os
import time
from typing import Any

import litellm
from cell import MESSAGES, MODEL, Cell, ask_until_plan, serve, set_up
from schema import PLAN

SETTLING_SECONDS = 0.5
send = set_up()
litellm.callbacks = ["otel"]
litellm.telemetry = False
litellm.suppress_debug_info = True
SDK = os.environ.get("SDK", "openai")
TOOL = {"type": "function", "function": {"name": "Plan", "parameters": PLAN}}


def ask(cell: Cell) -> None:
    """Play a cell."""
    asked: dict[str, Any] = {
        "model": f"{SDK}/{MODEL}",
        "messages": MESSAGES,
        "api_base": cell.url if SDK == "anthropic" else f"{cell.url}/v1",
        "api_key": "scripted",
        "timeout": cell.timeout,
        "num_retries": 0,
        "max_retries": 0,
    }
    if cell.tools:
        asked["tools"] = [TOOL]

    def call() -> str | None:
        if cell.stream:
            pieces = litellm.completion(
                **asked, stream=True, stream_options={"include_usage": True}
            )
            deltas = [choice.delta for piece in pieces for choice in piece.choices]
            return "".join(delta.content or "" for delta in deltas)
        message = litellm.completion(**asked).choices[0].message
        return message.tool_calls[0].function.arguments if cell.tools else message.content

    ask_until_plan(cell, call)


def flush() -> None:
    """Send what was told; callbacks run in a thread that nobody waits for."""
    time.sleep(SETTLING_SECONDS)
    send()


serve(ask, flush)
