"""A chat client of Microsoft's Agent Framework, which traces itself."""

import asyncio

from agent_framework import ChatOptions, Message
from agent_framework.observability import enable_instrumentation
from agent_framework.openai import OpenAIChatCompletionClient
from cell import MODEL, USER, Cell, ask_until_plan, serve, set_up
from openai import AsyncOpenAI

flush = set_up()
enable_instrumentation(enable_sensitive_data=True)


async def _call(cell: Cell) -> str | None:
    sdk = AsyncOpenAI(
        base_url=f"{cell.url}/v1", api_key="scripted", max_retries=0, timeout=cell.timeout
    )
    client = OpenAIChatCompletionClient(MODEL, async_client=sdk)
    messages = [Message(role="user", contents=[USER])]
    if cell.stream:
        pieces = client.get_response(messages, stream=True)
        return "".join([piece.text async for piece in pieces])
    return (await client.get_response(messages, options=ChatOptions())).text


def ask(cell: Cell) -> None:
    """Play a cell."""
    ask_until_plan(cell, lambda: asyncio.run(_call(cell)))


serve(ask, flush)
