"""A model of smolagents under OpenInference."""

from cell import MODEL, USER, Cell, ask_until_plan, serve, set_up
from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from smolagents import ChatMessage, OpenAIModel, Tool

flush = set_up()
SmolagentsInstrumentor().instrument()


class Plan(Tool):
    """The plan as a tool."""

    name = "Plan"
    description = "Plan."
    inputs = {
        "title": {"type": "string", "description": "What for."},
        "steps": {"type": "array", "description": "The steps."},
    }
    output_type = "string"

    def forward(self, title: str, steps: list[object]) -> str:
        """Return the plan."""
        return f"{title}: {steps}"


def ask(cell: Cell) -> None:
    """Play a cell."""
    model = OpenAIModel(
        MODEL,
        api_base=f"{cell.url}/v1",
        api_key="scripted",
        client_kwargs={"max_retries": 0, "timeout": cell.timeout},
        retry=False,
    )
    messages = [ChatMessage(role="user", content=[{"type": "text", "text": USER}])]

    def call() -> str | None:
        if cell.stream:
            pieces = model.generate_stream(messages)
            return "".join(piece.content or "" for piece in pieces)
        answer = model.generate(messages, tools_to_call_from=[Plan()] if cell.tools else None)
        return answer.tool_calls[0].function.arguments if cell.tools else answer.content

    ask_until_plan(cell, call)


serve(ask, flush)
