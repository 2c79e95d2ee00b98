"""An agent of pydantic-ai that asks by itself until the output fits."""

import os

from anthropic import AsyncAnthropic
from cell import MODEL, USER, Cell, serve, set_up
from openai import AsyncOpenAI
from plan import Plan
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

OUTPUTS = {"tool": ToolOutput, "native": NativeOutput, "prompted": PromptedOutput}
flush = set_up()
Agent.instrument_all()


def model(cell: Cell) -> AnthropicModel | OpenAIChatModel:
    """Return the model of the SDK that the environment names."""
    asked = {"api_key": "scripted", "max_retries": 0, "timeout": cell.timeout}
    if os.environ.get("SDK") == "anthropic":
        anthropic = AsyncAnthropic(base_url=cell.url, **asked)
        return AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=anthropic))
    openai = AsyncOpenAI(base_url=f"{cell.url}/v1", **asked)
    return OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=openai))


def ask(cell: Cell) -> None:
    """Play a cell."""
    output = OUTPUTS[os.environ["OUTPUT"]](Plan)
    agent = Agent(model(cell), name="planner", output_type=output, retries=cell.calls - 1)
    agent.run_sync(USER)


serve(ask, flush)
