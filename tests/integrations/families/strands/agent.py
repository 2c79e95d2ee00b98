"""An agent of Strands; it traces by itself."""

from typing import Any

from cell import MODEL, USER, Cell, ask_until_plan, serve, set_up
from schema import PLAN
from strands import Agent
from strands.models.openai import OpenAIModel
from strands.tools.tools import PythonAgentTool

flush = set_up()
SPEC: Any = {"name": "Plan", "description": "Plan.", "inputSchema": {"json": PLAN}}


def _stop(tool: Any, **invocation: Any) -> Any:
    invocation["request_state"]["stop_event_loop"] = True
    return {"toolUseId": tool["toolUseId"], "status": "success", "content": [{"text": "ok"}]}


def ask(cell: Cell) -> None:
    """Play a cell."""
    asked = {"max_retries": 0, "timeout": cell.timeout, "api_key": "scripted"}
    model = OpenAIModel(client_args={**asked, "base_url": f"{cell.url}/v1"}, model_id=MODEL)

    def call() -> str | None:
        tools = [PythonAgentTool("Plan", SPEC, _stop)] if cell.tools else []
        agent = Agent(
            name="planner", model=model, tools=tools, callback_handler=None, retry_strategy=None
        )
        return str(agent(USER))

    ask_until_plan(cell, call)


serve(ask, flush)
