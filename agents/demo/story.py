"""The demo's series, incidents and scenarios, read from `story.toml`."""

import tomllib
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from failsoft.events import ParseErrorType
from failsoft.retry.breaker import BreakerKind, BreakerState, TransitionCause

Mix = Mapping[ParseErrorType, float]
"""Weights of the kinds of failure; they need not add up to 1."""
HOUR = timedelta(hours=1)


class RunPace(NamedTuple):
    """The usual latency and answer length of a series."""

    latency_ms: int
    output_tokens: int


class _StoryPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DemoSeries(NamedTuple):
    """A series of the demo: a model at a node, its traffic and its usual failure rates.

    Shares are of all runs: `degraded` ends without a plan, `repaired` took two calls.
    """

    provider: str
    model: str
    node: str
    source: str
    peak_runs_per_hour: float
    degraded: float
    repaired: float
    latency_ms: int
    output_tokens: int
    # Called by an agent that posts events: not a model of the project's providers.
    is_outside: bool = False

    @property
    def pace(self) -> RunPace:
        return RunPace(self.latency_ms, self.output_tokens)


class UsagePeriod(_StoryPart):
    """The hours before now in which a prompt version was in use; `until_hours` 0 is now."""

    source: str
    environment: str
    name: str
    since_hours: float
    until_hours: float


class Odds(_StoryPart):
    """The expected outcome of a run: shares of all runs, and the kinds of failure."""

    degraded: float
    repaired: float
    mix: Mix
    # The error codes of an incident; empty for any.
    codes: frozenset[str] = frozenset()


class DemoIncident(Odds):
    """A period in which one model failed more than usual, with all prompts or one."""

    provider: str
    model: str
    since_hours: float
    until_hours: float
    prompt_version: str | None = None
    # The cause of its resolution, and a comment.
    resolved_as: str = ""
    note: str = ""


class BreakerMove(NamedTuple):
    """A change of a breaker's state, its time and its cause."""

    hours_ago: float
    state: BreakerState
    cause: TransitionCause


class DemoBreaker(_StoryPart):
    """A breaker of a model of the demo, and its changes, oldest first."""

    provider: str
    model: str
    node: str
    kind: BreakerKind
    moves: tuple[BreakerMove, ...]


class DemoPattern(_StoryPart):
    """A learned fix pattern; `told` and `withheld` are (good, runs) with and without the hint."""

    error_class: ParseErrorType
    code: str
    pointer: str
    change: str
    before: str
    after: str
    successes: int
    told: tuple[int, int]
    withheld: tuple[int, int]


class DemoPrice(_StoryPart):
    provider: str
    model: str
    input_per_million: Decimal
    output_per_million: Decimal


class ScriptedStep(NamedTuple):
    """A step of a valid plan, the output of its tool, and the positions it depends on."""

    title: str
    tool: str
    args: dict[str, Any]
    output: Any
    after: tuple[int, ...] = ()


class Scenario(_StoryPart):
    """A goal, the steps that reach it, and the final answer."""

    source: str
    goal: str
    answer: str
    # Each with whether the last attempt may drop it.
    constraints: tuple[tuple[str, bool], ...] = ()
    steps: tuple[ScriptedStep, ...]


class DemoCycle(_StoryPart):
    """One cycle: the outcomes of its calls, and what happens to the run of their plan.

    `failing_step` is the 1-based step whose tool fails; `cancelled_after` the number of
    steps after which it is cancelled.
    """

    calls: tuple[Literal["good", "bad", "lost"], ...]
    failing_step: int | None = None
    cancelled_after: int | None = None


class Plot(_StoryPart):
    """A goal with all its rows: its age, its series, and the name of its cycles."""

    hours_ago: float
    model: str
    node: str = "plan"
    cycles: str
    environment: str = "prod"


class Story(_StoryPart):
    days: int
    deployed_hours_ago: tuple[float, ...]
    environments: dict[str, float]
    usual: Mix
    series: tuple[DemoSeries, ...]
    prompts: tuple[UsagePeriod, ...]
    incidents: tuple[DemoIncident, ...]
    breakers: tuple[DemoBreaker, ...]
    fix_patterns: tuple[DemoPattern, ...]
    prices: tuple[DemoPrice, ...]
    cycles: dict[str, tuple[DemoCycle, ...]]
    plots: tuple[Plot, ...]
    scenarios: tuple[Scenario, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(scenario.source for scenario in self.scenarios))


STORY = Story.model_validate(
    tomllib.loads(Path(__file__).with_name("story.toml").read_text(encoding="utf-8"))
)


def prompts_in_use(source: str, environment: str, age: timedelta) -> list[str]:
    """Return the prompt versions that a source used `age` ago, at least one."""
    return [
        period.name
        for period in STORY.prompts
        if (period.source, period.environment) == (source, environment) and _covers(period, age)
    ]


def release_at(now: datetime, age: timedelta) -> str:
    """Return the release in use `age` ago, named after the day of its deploy."""
    deployed = min(hours for hours in STORY.deployed_hours_ago if hours * HOUR >= age)
    return f"{now - min(deployed, (STORY.days + 1) * 24) * HOUR:%Y.%m.%d}-1"


def odds_of(series: DemoSeries, prompt_version: str, age: timedelta) -> Odds:
    """Return the odds of a run: those of its incident, or the usual ones."""
    for incident in STORY.incidents:
        if (
            (series.provider, series.model) == (incident.provider, incident.model)
            and incident.prompt_version in (None, prompt_version)
            and _covers(incident, age)
        ):
            return incident
    return Odds(degraded=series.degraded, repaired=series.repaired, mix=STORY.usual)


def _covers(period: UsagePeriod | DemoIncident, age: timedelta) -> bool:
    return period.until_hours <= age / HOUR < period.since_hours


def plan_of(scenario: Scenario) -> dict[str, Any]:
    return {
        "steps": [
            {
                "step_id": f"step_{position}",
                "title": step.title,
                "dependencies": [f"step_{earlier}" for earlier in step.after],
                "tool": {"name": step.tool, "args": step.args},
            }
            for position, step in enumerate(scenario.steps, start=1)
        ]
    }


def proposal_of(scenario: Scenario, cycle: int) -> dict[str, Any]:
    """Return the valid next step of a cycle; `finish` after the last step."""
    if cycle > len(scenario.steps):
        return {"kind": "finish", "answer": scenario.answer}
    step = scenario.steps[cycle - 1]
    return {"kind": "call_tool", "tool": step.tool, "args": step.args}
