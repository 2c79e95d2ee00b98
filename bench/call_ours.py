"""Our own contenders of `bench.call`: `python -m bench.call_ours NAME URL`.

ours        ladder, prompt, adapter, recovering parser, validation: what stands on the call path
recorded    `generate_plan_with_retry` with its rows, events, breakers and lease in PostgreSQL
"""

import sys
from collections.abc import Callable

from agents.cycle.plan_node import generate_plan_with_retry
from agents.cycle.planner_input import request_of
from agents.goals.claims import GoalClaim, claim_goal
from agents.goals.submission import submit_goal
from agents.llm.models import LanguageModel, Provider
from agents.llm.openai import OpenAIProvider
from bench.call_peers import GOAL, Answered, take_orders
from bench.model import Planner
from diagnostics.accounts.models import Project
from failsoft.retry.engine import Succeeded
from failsoft.retry.prompts import Request


def ours(url: str) -> Callable[[], object]:
    """The path of a call without anything that is stored."""
    planner = Planner(OpenAIProvider(url, None), "instant", retries=2)

    def call() -> object:
        climb = planner.climb(GOAL)
        if not climb.succeeded:
            raise RuntimeError(climb.failures)
        return climb

    return call


class Recorded:
    """The whole way of a goal's planning; submitting and claiming it are not measured."""

    def __init__(self, url: str) -> None:
        self.project = Project.objects.create(slug="bench", name="Bench")
        provider = Provider.objects.create(
            project=self.project, name="instant", adapter="openai", base_url=url
        )
        LanguageModel.objects.create(
            project=self.project, provider=provider, name="instant", is_default=True
        )
        self.ready: list[tuple[GoalClaim, Request]] = []

    def prepare(self, count: int) -> None:
        """Have so many goals claimed."""
        for _ in range(count):
            goal = submit_goal(self.project.pk, {"goal": GOAL, "mode": "plan"})
            claim = claim_goal(goal.pk)
            if claim is None:
                raise RuntimeError("somebody else took the goal")
            self.ready.append((claim, request_of(claim.goal)))

    def __call__(self) -> object:
        ending = generate_plan_with_retry(*self.ready.pop())
        if not isinstance(ending, Succeeded):
            raise TypeError(ending)
        return ending


CONTENDERS: dict[str, Callable[[str], Answered]] = {"ours": ours, "recorded": Recorded}


if __name__ == "__main__":
    take_orders(CONTENDERS[sys.argv[1]](sys.argv[2]))
