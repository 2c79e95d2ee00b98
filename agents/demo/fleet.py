"""Who plays: sources, models with their habits, prompt versions and releases."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from failsoft.events import ParseErrorType

DAYS = 14
ENVIRONMENTS = {"prod": 1.0, "staging": 0.1}
"""Share of a line's peak traffic in each environment."""

SUPPORT, OPERATIONS = "demo-support-bot", "demo-ops-assistant"
SOURCES = (SUPPORT, OPERATIONS)

Mix = Mapping[ParseErrorType, float]
"""Weights of the kinds of failure; they need not add up to 1."""

USUAL: Mix = {
    ParseErrorType.SCHEMA_INVALID: 0.42,
    ParseErrorType.NOT_JSON: 0.28,
    ParseErrorType.TRUNCATED: 0.12,
    ParseErrorType.MULTIPLE_OBJECTS: 0.07,
    ParseErrorType.DUPLICATE_KEY: 0.04,
    ParseErrorType.EMPTY_OUTPUT: 0.04,
    ParseErrorType.REFUSAL: 0.03,
}


@dataclass(frozen=True, slots=True)
class DemoSeries:
    """A series of the demo: a model at a node, its traffic and its usual luck.

    Shares are of all runs: `degraded` ends without a plan, `repaired` took two calls.
    """

    provider: str
    model: str
    node: str
    peak_runs_per_hour: float
    degraded: float
    repaired: float
    latency_ms: int
    output_tokens: int
    source: str = SUPPORT


LINES = (
    DemoSeries("anthropic", "claude-haiku-4", "plan", 30, 0.040, 0.110, 1750, 310),
    DemoSeries(
        "anthropic",
        "claude-haiku-4",
        "next_step",
        10,
        0.035,
        0.090,
        900,
        120,
        OPERATIONS,
    ),
    DemoSeries("anthropic", "claude-sonnet-4", "plan", 7, 0.012, 0.055, 3900, 340),
    DemoSeries(
        "anthropic",
        "claude-sonnet-4",
        "next_step",
        4,
        0.010,
        0.040,
        2100,
        130,
        OPERATIONS,
    ),
    DemoSeries("openai", "gpt-4.1-mini", "plan", 10, 0.028, 0.085, 1500, 290),
    DemoSeries("openai", "gpt-4.1-mini", "next_step", 6, 0.022, 0.070, 800, 110, OPERATIONS),
    DemoSeries("openai", "gpt-4.1", "plan", 4, 0.010, 0.045, 3100, 330),
    DemoSeries("openai", "gpt-4.1", "next_step", 3, 0.010, 0.035, 1700, 125, OPERATIONS),
    DemoSeries("mistral", "mistral-small-3", "plan", 5, 0.060, 0.150, 1300, 280, OPERATIONS),
    DemoSeries("mistral", "mistral-small-3", "next_step", 4, 0.050, 0.130, 700, 115),
    DemoSeries("mistral", "mistral-large-2", "plan", 3, 0.020, 0.070, 2900, 320, OPERATIONS),
    DemoSeries("mistral", "mistral-large-2", "next_step", 2.5, 0.018, 0.060, 1600, 120),
)


@dataclass(frozen=True, slots=True)
class UsagePeriod:
    """The hours before now in which something was in use; `until_hours` 0 is now."""

    name: str
    since_hours: float
    until_hours: float = 0.0

    def covers(self, age: timedelta) -> bool:
        """Whether it was in use so long ago."""
        hours = age / timedelta(hours=1)
        return self.until_hours <= hours < self.since_hours


ALWAYS = 10_000.0
FLAWED_PROMPT = "planner-v4"
FLAWED_SINCE_HOURS, FLAWED_UNTIL_HOURS = 9 * 24 + 7.0, 8 * 24 + 2.0

PROMPTS: Mapping[tuple[str, str], tuple[UsagePeriod, ...]] = {
    (SUPPORT, "prod"): (
        UsagePeriod("planner-v3", ALWAYS, FLAWED_SINCE_HOURS),
        UsagePeriod(FLAWED_PROMPT, FLAWED_SINCE_HOURS, FLAWED_UNTIL_HOURS),
        UsagePeriod("planner-v5", FLAWED_UNTIL_HOURS),
        UsagePeriod("planner-v5-short", 5 * 24),
    ),
    (SUPPORT, "staging"): (UsagePeriod("planner-v5", ALWAYS, 50), UsagePeriod("planner-v6", 50)),
    (OPERATIONS, "prod"): (UsagePeriod("ops-v2", ALWAYS), UsagePeriod("ops-v3", 6 * 24)),
    (OPERATIONS, "staging"): (UsagePeriod("ops-v3", ALWAYS),),
}

DEPLOYED_HOURS_AGO = (ALWAYS, 12 * 24.0, 9 * 24 + 8.0, 8 * 24 + 2.0, 4 * 24.0, 20.0)


def prompts_in_use(source: str, environment: str, age: timedelta) -> list[str]:
    """Name the prompt versions a source used so long ago, at least one."""
    return [period.name for period in PROMPTS[source, environment] if period.covers(age)]


def release_at(now: datetime, age: timedelta) -> str:
    """Name the release in use so long ago, after the day it was deployed."""
    deployed = min(hours for hours in DEPLOYED_HOURS_AGO if timedelta(hours=hours) >= age)
    day = now - timedelta(hours=min(deployed, DAYS * 24 + 24))
    return f"{day:%Y.%m.%d}-1"
