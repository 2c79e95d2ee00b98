"""The floor and the peers of `bench.call`: `python call_peers.py NAME URL`, each in its process.

Reads a number of calls from stdin, makes them, and answers one line: milliseconds of each, as JSON,
wall time and CPU time. Knows nothing of the product, so that it runs in the peers' environment too.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

GOAL = "Echo three words, one after the other."
ASK = f"Goal:\n{GOAL}\n\nWrite the plan as one JSON object."
SYSTEM = "You plan tasks for a program."


class Tool(BaseModel):
    name: str
    args: dict[str, Any] = {}


class Step(BaseModel):
    step_id: str
    title: str | None = None
    dependencies: list[str] = []
    tool: Tool


class Plan(BaseModel):
    steps: list[Step]


def floor(url: str) -> Callable[[], Plan]:
    """Post with httpx, read with pydantic."""
    import httpx  # noqa: PLC0415 - each contender loads what it needs

    client = httpx.Client()
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASK}]
    body = {"model": "instant", "messages": messages, "temperature": 0.2}

    def call() -> Plan:
        answer = client.post(f"{url}/chat/completions", json=body).json()
        return Plan.model_validate_json(answer["choices"][0]["message"]["content"])

    return call


def instructor(url: str) -> Callable[[], Plan]:
    """instructor over the official SDK, in its default mode."""
    import instructor as peer  # noqa: PLC0415
    import openai  # noqa: PLC0415

    client = peer.from_openai(openai.OpenAI(base_url=url, api_key="none"))

    def call() -> Plan:
        found: Plan = client.chat.completions.create(
            model="instant",
            response_model=Plan,
            max_retries=2,
            temperature=0.2,
            messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASK}],
        )
        return found

    return call


def pydantic_ai(url: str) -> Callable[[], Plan]:
    """pydantic-ai's agent with a typed output, run synchronously."""
    from pydantic_ai import Agent  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    provider = OpenAIProvider(base_url=url, api_key="none")
    model = OpenAIChatModel("instant", provider=provider)
    agent = Agent(model, output_type=Plan, system_prompt=SYSTEM, retries=2)

    def call() -> Plan:
        found: Plan = agent.run_sync(ASK).output
        return found

    return call


CONTENDERS: dict[str, Callable[[str], Callable[[], object]]] = {
    "floor": floor,
    "instructor": instructor,
    "pydantic-ai": pydantic_ai,
}


Answered = Callable[[], object]


def take_orders(call: Answered) -> None:
    """Make as many calls as each line of stdin says, and tell what they took.

    A contender with `prepare` has its goals made ready before the clock runs.
    """
    prepare = getattr(call, "prepare", None)
    for line in sys.stdin:
        if prepare:
            prepare(int(line))
        walls, cpus = [], []
        for _ in range(int(line)):
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            cpus.append((time.process_time() - cpu) * 1000)
            walls.append((time.perf_counter() - wall) * 1000)
        sys.stdout.write(json.dumps([walls, cpus]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    take_orders(CONTENDERS[sys.argv[1]](sys.argv[2]))
