"""What the ladder costs where no retry is needed: against the bare call of the same provider.

    python -m bench.ladder [--quick]

A provider answers at once, or after a set time, with a good plan. The bare call reads it with
json.loads; the ladder builds the prompt, plans the attempt and judges the plan too (S1-61, S1-84).
"""

import argparse
import json
import sys
from time import perf_counter

from agents.llm.provider import CompletionRequest
from agents.llm.scripted import ScriptedProvider
from bench.growth import seconds_of
from bench.model import Planner
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.policy import RetryPolicy
from failsoft.retry.prompts import Request, build_prompt

PLAN = '{"steps": [{"step_id": "step_1", "tool": {"name": "echo", "args": {"text": "hi"}}}]}'
GOAL = "Echo the word hi."
ROUNDS = 50


def measure(delay_seconds: float, rounds: int = ROUNDS) -> tuple[float, float]:
    """Seconds of the bare call and of the ladder, each the median of `rounds`."""
    reply = {"text": PLAN, "delay_seconds": delay_seconds, "repeat": True}
    provider = ScriptedProvider([reply])
    planner = Planner(provider, "scripted", retries=2)
    request = make_request(planner)

    def call_bare() -> object:
        return json.loads(provider.complete(request).text)

    bare = seconds_of(call_bare, rounds, clock=perf_counter)
    return bare, seconds_of(lambda: planner.climb(GOAL), rounds, clock=perf_counter)


def make_request(planner: Planner) -> CompletionRequest:
    """The request that the ladder makes first."""
    policy: RetryPolicy = planner.policy
    first = planner.first_attempt()
    prompt = build_prompt(Request(PlannerSchema.PLAN, GOAL, planner.tools), first)
    return CompletionRequest(
        model=planner.model,
        system=prompt.system,
        user=prompt.user,
        output_mode=first.output_mode,
        max_output_tokens=policy.max_output_tokens,
        temperature=policy.temperature,
        timeout_seconds=policy.timeout_seconds,
    )


def main() -> None:
    """Print the cost beside providers of several speeds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave out the slow one")
    delays = (0.0, 0.05) if parser.parse_args().quick else (0.0, 0.05, 0.5)
    for delay_seconds in delays:
        bare, ladder = measure(delay_seconds, 10 if delay_seconds else 200)
        sys.stdout.write(
            f"provider {delay_seconds * 1000:4.0f} ms: bare {bare * 1000:7.2f} ms, "
            f"ladder {ladder * 1000:7.2f} ms, ratio {ladder / bare:.2f}, "
            f"more {(ladder - bare) * 1000:.2f} ms\n"
        )


if __name__ == "__main__":
    main()
