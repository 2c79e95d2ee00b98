"""A planner of one's own on the Anthropic SDK."""

import json
from typing import Any

from anthropic import Anthropic
from cell import MESSAGES, MODEL, Cell, ask_until_plan
from schema import PLAN

TOOL = {"name": "Plan", "input_schema": PLAN}


def ask(cell: Cell) -> None:
    """Play a cell."""
    client = Anthropic(base_url=cell.url, api_key="scripted", max_retries=0, timeout=cell.timeout)
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 512, "messages": MESSAGES}
    if cell.tools:
        asked["tools"] = [TOOL]

    def call() -> str | None:
        if cell.stream:
            with client.messages.stream(**asked) as stream:
                content = stream.get_final_message().content
        else:
            content = client.messages.create(**asked).content
        for block in content:
            return json.dumps(block.input) if block.type == "tool_use" else block.text
        return None

    ask_until_plan(cell, call)
