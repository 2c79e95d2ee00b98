"""An agent of OpenAI's Agents SDK, told by the instrumentation that the environment names."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import logfire
from cell import MODEL, SYSTEM, USER, Cell, ask_until_plan, serve, set_up
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.instrumentation import openai_agents
from schema import PLAN

from agents import Agent, FunctionTool, OpenAIChatCompletionsModel, Runner, set_trace_processors


def instrument() -> Callable[[], object]:
    """Instrument the SDK; its own traces would go to OpenAI."""
    set_trace_processors([])
    if os.environ["BY"] == "logfire":
        logfire.configure(send_to_logfire=False, console=False, inspect_arguments=False)
        logfire.instrument_openai_agents()
        return logfire.force_flush
    flush = set_up()
    by = openai_agents if os.environ["BY"] == "opentelemetry" else None
    (by.OpenAIAgentsInstrumentor if by else OpenAIAgentsInstrumentor)().instrument()
    return flush


async def _echo(_context: object, arguments: str) -> str:
    return arguments


def ask(cell: Cell) -> None:
    """Play a cell."""
    ask_until_plan(cell, lambda: asyncio.run(_run(cell)))


async def _run(cell: Cell) -> str:
    client = AsyncOpenAI(
        base_url=f"{cell.url}/v1", api_key="scripted", max_retries=0, timeout=cell.timeout
    )
    tool = FunctionTool("Plan", "Plan.", PLAN, _echo, strict_json_schema=False)
    agent = Agent[Any](
        name="planner",
        instructions=SYSTEM,
        model=OpenAIChatCompletionsModel(MODEL, client),
        tools=[tool] if cell.tools else [],
        tool_use_behavior="stop_on_first_tool",
    )
    async with client:
        if not cell.stream:
            return str((await Runner.run(agent, USER, max_turns=1)).final_output)
        result = Runner.run_streamed(agent, USER, max_turns=1)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)


serve(ask, instrument())
