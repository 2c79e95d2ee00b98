"""A crew of CrewAI whose guardrail lets nothing but a plan pass, under OpenInference."""

import os
from typing import Any

from cell import MODEL, USER, Cell, serve, set_up
from crewai import LLM, Agent, Crew, Task, TaskOutput
from openinference.instrumentation.crewai import CrewAIInstrumentor
from openinference.instrumentation.openai import OpenAIInstrumentor
from plan import Plan
from pydantic import ValidationError

LISTENS = "LISTENER" in os.environ

flush = set_up()
CrewAIInstrumentor().instrument(use_event_listener=LISTENS)
if not LISTENS:
    # Calls of models are then told by the SDK's instrumentation alone.
    OpenAIInstrumentor().instrument()


def fits(output: TaskOutput) -> tuple[bool, Any]:
    """Tell whether an output is a plan, or what is wrong with it."""
    try:
        Plan.model_validate_json(output.raw)
    except ValidationError as error:
        return False, str(error)
    return True, output.raw


def ask(cell: Cell) -> None:
    """Play a cell."""
    llm = LLM(
        model=MODEL,
        provider="openai",
        base_url=f"{cell.url}/v1",
        api_key="scripted",
        max_retries=0,
        timeout=cell.timeout,
        stream=cell.stream,
    )
    planner = Agent(role="planner", goal="plan", backstory="plans", llm=llm, max_retry_limit=0)
    task = Task(
        description=USER,
        expected_output="A plan in JSON.",
        agent=planner,
        guardrail=fits,
        guardrail_max_retries=cell.calls - 1,
    )
    Crew(agents=[planner], tasks=[task], tracing=False).kickoff()


serve(ask, flush)
