"""The demo's series, incidents and scenarios, read from `story.toml`."""

import tomllib
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from failsoft.events import ParseErrorType

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
    pace: RunPace
    # Called by an agent that posts events: not a model of the project's providers.
    is_outside: bool = False


class _Period(_StoryPart):
    """Hours before now; `until_hours` 0 is now."""

    since_hours: float
    until_hours: float

    def covers(self, age: timedelta) -> bool:
        return self.until_hours <= age / HOUR < self.since_hours


class UsagePeriod(_Period):
    """The period in which a prompt version was in use."""

    source: str
    environment: str
    name: str


class Odds(_StoryPart):
    """The expected outcome of a run: shares of all runs, and the kinds of failure."""

    degraded: float
    repaired: float
    mix: Mix
    # The error codes of an incident; empty for any.
    codes: frozenset[str] = frozenset()


class DemoIncident(Odds, _Period):
    """A period in which one model failed more than usual, with all prompts or one."""

    model: str
    prompt_version: str | None = None
    # The cause of its resolution, and a comment.
    resolved_as: str = ""
    note: str = ""


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

    @property
    def plan(self) -> dict[str, Any]:
        return {
            "steps": [
                {
                    "step_id": f"step_{position}",
                    "title": step.title,
                    "dependencies": [f"step_{earlier}" for earlier in step.after],
                    "tool": {"name": step.tool, "args": step.args},
                }
                for position, step in enumerate(self.steps, start=1)
            ]
        }

    @property
    def next_step(self) -> dict[str, Any]:
        return {"kind": "call_tool", "tool": self.steps[0].tool, "args": self.steps[0].args}


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
    # Columns of their tables; a breaker with its `moves`.
    breakers: tuple[dict[str, Any], ...]
    fix_patterns: tuple[dict[str, Any], ...]
    prices: tuple[dict[str, Any], ...]
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
        if (period.source, period.environment) == (source, environment) and period.covers(age)
    ]


def release_at(now: datetime, age: timedelta) -> str:
    """Return the release in use `age` ago, named after the day of its deploy."""
    deployed = min(hours for hours in STORY.deployed_hours_ago if hours * HOUR >= age)
    return f"{now - min(deployed, (STORY.days + 1) * 24) * HOUR:%Y.%m.%d}-1"


def odds_of(series: DemoSeries, prompt_version: str, age: timedelta) -> Odds:
    """Return the odds of a run: those of its incident, or the usual ones."""
    for incident in STORY.incidents:
        if (
            incident.model == series.model
            and incident.prompt_version in (None, prompt_version)
            and incident.covers(age)
        ):
            return incident
    return Odds(degraded=series.degraded, repaired=series.repaired, mix=STORY.usual)
