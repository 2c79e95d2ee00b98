"""LlamaIndex under OpenInference: its model called as it is, or for a structured output."""

import os
from typing import Any

from cell import MODEL, USER, Cell, ask_until_plan, serve, set_up
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry import trace
from plan import Plan

MESSAGES = [ChatMessage(role="user", content=USER)]
TOOL = FunctionTool.from_defaults(lambda **plan: None, name="Plan", fn_schema=Plan)

flush = set_up()
LlamaIndexInstrumentor().instrument()


def model(cell: Cell) -> OpenAILike:
    """Return the model; its name is none that the package knows."""
    return OpenAILike(
        model=MODEL,
        api_base=f"{cell.url}/v1",
        api_key="scripted",
        max_retries=0,
        timeout=cell.timeout,
        is_chat_model=True,
        is_function_calling_model=True,
        additional_kwargs={"stream_options": {"include_usage": True}} if cell.stream else {},
    )


def ask(cell: Cell) -> None:
    """Play a cell."""
    (ask_structured if os.environ.get("STRUCTURED") else ask_plain)(cell)


def ask_plain(cell: Cell) -> None:
    """Ask as an agent of one's own does."""
    llm = model(cell)

    def call() -> str | None:
        if cell.stream:
            return "".join(piece.delta or "" for piece in llm.stream_chat(MESSAGES))
        if not cell.tools:
            return llm.chat(MESSAGES).message.content
        answer = llm.chat_with_tools([TOOL], chat_history=MESSAGES)
        arguments: str = answer.message.additional_kwargs["tool_calls"][0].function.arguments
        return arguments

    ask_until_plan(cell, call)


def ask_structured(cell: Cell) -> None:
    """Ask for a plan until there is one."""
    llm: Any = model(cell).as_structured_llm(Plan)
    with trace.get_tracer("agent").start_as_current_span("agent"):
        for left in reversed(range(cell.calls)):
            try:
                if cell.stream:
                    list(llm.stream_chat(MESSAGES))
                else:
                    llm.chat(MESSAGES)
            except Exception:
                if not left:
                    raise
            else:
                return


serve(ask, flush)
