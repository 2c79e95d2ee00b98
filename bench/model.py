"""The ladder on a real language model: what the first answer gives, and what retries add.

    python -m bench.model                          the embedded model, started for the run
    python -m bench.model --url http://host/v1     another server that speaks chat completions

Forty fixed goals, asked for as plans with the product's own prompts, ladder, adapter and
parser; nothing is stored and no plan is run. Success is a plan the contract accepts, not a
plan that is wise. Intervals are 95 % Wilson (S1-50, S1-59, S1-62).
"""

import argparse
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from agents.llm.openai import OpenAIProvider
from agents.llm.provider import CompletionProvider, CompletionRequest, ProviderError
from agents.llm.transport import call
from bench.database import say
from bench.servers import free_port, start
from diagnostics.analysis.statistics import wilson_interval
from failsoft.retry.answer_schemas import narrow_schema
from failsoft.retry.answers import PlannerSchema, Understood, interpret
from failsoft.retry.engine import (
    CallFailed,
    Ending,
    Feedback,
    Invalid,
    PlannedAttempt,
    Result,
    Succeeded,
    Valid,
    attempts,
)
from failsoft.retry.policy import OutputMode, RetryConfig, RetryPolicy
from failsoft.retry.prompts import Request, ToolOffer, build_prompt, tools_for
from plans.tools import builtin  # noqa: F401
from plans.tools.registry import call_check, offered_tools

GOALS = Path(__file__).resolve().parent / "goals.txt"
EMBEDDED = "SmolLM2-135M"
START_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Climb:
    """One goal's ladder: how it ended, why answers failed, seconds and tokens it took."""

    ending: Ending
    failures: tuple[str, ...]
    seconds: float
    tokens: int

    @property
    def attempts(self) -> int:
        """Calls made."""
        return self.ending.attempts

    @property
    def succeeded(self) -> bool:
        return isinstance(self.ending, Succeeded)


class Planner:
    """A provider, its model, and the policy that a fresh installation gives it."""

    def __init__(self, provider: CompletionProvider, model: str, retries: int) -> None:
        self.provider = provider
        self.model = model
        self.policy = RetryPolicy(
            retry=RetryConfig(max_attempts=retries),
            last_output_mode=OutputMode.SCHEMA,
            max_output_tokens=192,
            max_output_tokens_ceiling=4 * 192,
            timeout_seconds=120,
        )
        self.tools = tuple(
            ToolOffer(tool.name, tool.description, tool.schema()) for tool in offered_tools()
        )
        self.tokens = 0
        self.failures: list[str] = []

    def climb(self, goal: str) -> Climb:
        """Climb one ladder to its end."""
        self.tokens, self.failures = 0, []
        begun = time.monotonic()
        ladder = attempts(self.policy)
        attempt = next(ladder)
        while True:
            try:
                attempt = ladder.send(self._settle(goal, attempt))
            except StopIteration as stop:
                seconds = time.monotonic() - begun
                return Climb(stop.value, tuple(self.failures), seconds, self.tokens)

    def request_of(self, goal: str, attempt: PlannedAttempt) -> CompletionRequest:
        """Return what a ladder sends in an attempt."""
        request = Request(PlannerSchema.PLAN, goal, self.tools)
        prompt = build_prompt(request, attempt)
        return CompletionRequest(
            model=self.model,
            system=prompt.system,
            user=prompt.user,
            output_mode=attempt.output_mode,
            max_output_tokens=attempt.max_output_tokens,
            temperature=attempt.temperature,
            timeout_seconds=attempt.timeout_seconds,
            schema_name=PlannerSchema.PLAN.value,
            json_schema=narrow_schema(PlannerSchema.PLAN, tools_for(request, attempt)),
        )

    def _settle(self, goal: str, attempt: PlannedAttempt) -> Result:
        reply = call(self.provider, self.request_of(goal, attempt))
        answer = reply.answer
        if isinstance(answer, ProviderError):
            self.failures.append(answer.error_type.value)
            return CallFailed(answer.error_type)
        self.tokens += (answer.input_tokens or 0) + (answer.output_tokens or 0)
        found = interpret(answer.text, answer.finish_reason, PlannerSchema.PLAN, call_check())
        if isinstance(found, Understood):
            return Valid(found.value)
        self.failures.append(found.error_type.value)
        return Invalid(Feedback(answer.text, found.error_type, found.errors))


def describe_share(name: str, part: int, whole: int, goal: str = "") -> str:
    """One line: the share with its interval; without a trial there is no share."""
    if whole == 0:
        return f"{name:<24} no runs"
    low, high = wilson_interval(part, whole)
    share = f"{part}/{whole} = {part / whole:.1%}"
    return f"{name:<24} {share:<16} [{low:.1%}, {high:.1%}]  {goal}".rstrip()


def summarise(climbs: Sequence[Climb]) -> list[str]:
    """The report: without retries, with them, and why answers failed."""
    first = sum(climb.succeeded and climb.attempts == 1 for climb in climbs)
    good = sum(climb.succeeded for climb in climbs)
    whole = len(climbs)
    seconds = sorted(climb.seconds for climb in climbs)
    reasons = Counter(reason for climb in climbs for reason in climb.failures)
    return [
        describe_share("first pass (no retry)", first, whole),
        describe_share("recovered by retries", good - first, whole),
        describe_share("success after retries", good, whole, "goal > 90 %"),
        describe_share("retry success", good - first, whole - first, "goal > 60 %"),
        f"calls                    {sum(climb.attempts for climb in climbs)}",
        f"tokens                   {sum(climb.tokens for climb in climbs)}",
        f"seconds a goal           median {seconds[whole // 2]:.1f}, longest {seconds[-1]:.1f}",
        "failed answers           "
        + (", ".join(f"{kind} {count}" for kind, count in reasons.most_common()) or "none"),
    ]


@contextmanager
def embedded_model() -> Iterator[tuple[str, str]]:
    """Serve the embedded model for the run; gives its address and key."""
    port, key = free_port(), secrets.token_hex(16)
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "config.local.model", "--port", str(port)]
    env = {**os.environ, "FAILSOFT_MODEL_KEY": key}
    with ExitStack() as stack:
        start(command, env, f"{address}/health", stack, START_SECONDS)
        yield f"{address}/v1", key


def run(planner: Planner, goals: Sequence[str], *, verbose: bool) -> list[str]:
    """Climb for every goal and report; one line a goal when verbose."""
    climbs = []
    for goal in goals:
        climb = planner.climb(goal)
        climbs.append(climb)
        if verbose:
            verdict = "ok" if climb.succeeded else "failed"
            why = ",".join(climb.failures)
            say(f"  {verdict:<6} {climb.attempts} {climb.seconds:6.1f} s  {why:<32} {goal}")
    return summarise(climbs)


def main() -> None:
    """Run the bench as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="base address of a server, with /v1")
    parser.add_argument("--model", default=EMBEDDED)
    parser.add_argument("--retries", type=int, default=RetryConfig().max_attempts)
    parser.add_argument("--goals", type=int, default=40, help="only the first so many")
    parser.add_argument("--verbose", action="store_true", help="a line for every goal")
    options = parser.parse_args()
    goals = GOALS.read_text(encoding="utf-8").splitlines()[: options.goals]
    say(f"{options.model}, {len(goals)} goals, max_retries {options.retries}")
    given = nullcontext((options.url, os.environ.get("MODEL_KEY")))
    with given if options.url else embedded_model() as (url, key):
        planner = Planner(OpenAIProvider(url, key), options.model, options.retries)
        for line in run(planner, goals, verbose=options.verbose):
            say(line)


if __name__ == "__main__":
    main()
