"""Chat completion of Semantic Kernel, which traces itself."""

import asyncio
import logging

from cell import MODEL, USER, Cell, ask_until_plan, serve, set_up
from openai import AsyncOpenAI
from opentelemetry._logs import get_logger_provider
from opentelemetry.sdk._logs import LoggingHandler
from semantic_kernel.connectors.ai.open_ai import (
    OpenAIChatCompletion,
    OpenAIChatPromptExecutionSettings,
)
from semantic_kernel.contents import ChatHistory

flush = set_up()
logging.getLogger("semantic_kernel").setLevel(logging.INFO)
logging.getLogger("semantic_kernel").addHandler(
    LoggingHandler(logger_provider=get_logger_provider())
)


async def _call(cell: Cell) -> str | None:
    sdk = AsyncOpenAI(
        base_url=f"{cell.url}/v1", api_key="scripted", max_retries=0, timeout=cell.timeout
    )
    chat = OpenAIChatCompletion(ai_model_id=MODEL, async_client=sdk)
    history, settings = ChatHistory(), OpenAIChatPromptExecutionSettings()
    history.add_user_message(USER)
    if cell.stream:
        pieces = chat.get_streaming_chat_message_content(history, settings)
        return "".join([str(piece) async for piece in pieces])
    return str(await chat.get_chat_message_content(history, settings))


def ask(cell: Cell) -> None:
    """Play a cell."""
    ask_until_plan(cell, lambda: asyncio.run(_call(cell)))


serve(ask, flush)
