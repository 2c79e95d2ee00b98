"""An agent of Agno under OpenInference."""

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from cell import MODEL, USER, Cell, ask_until_plan, serve, set_up
from openinference.instrumentation.agno import AgnoInstrumentor

flush = set_up()
AgnoInstrumentor().instrument()


def ask(cell: Cell) -> None:
    """Play a cell."""
    model = OpenAIChat(
        id=MODEL, base_url=f"{cell.url}/v1", api_key="scripted", timeout=cell.timeout, max_retries=0
    )
    agent = Agent(model=model, telemetry=False)

    def call() -> str | None:
        if cell.stream:
            return "".join(str(piece.content or "") for piece in agent.run(USER, stream=True))
        content: str | None = agent.run(USER).content
        return content

    ask_until_plan(cell, call)


serve(ask, flush)
