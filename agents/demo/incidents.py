"""What went wrong: one incident six hours old, one repaired last week."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from agents.demo.fleet import (
    FLAWED_PROMPT,
    FLAWED_SINCE_HOURS,
    FLAWED_UNTIL_HOURS,
    USUAL,
    DemoSeries,
    Mix,
)
from failsoft.events import ParseErrorType

ONSET_HOURS = 6.0


@dataclass(frozen=True, slots=True)
class DemoIncident:
    """A stretch in which one model did worse than usual, with all prompts or one."""

    provider: str
    model: str
    since_hours: float
    until_hours: float
    degraded: float
    repaired: float
    mix: Mix
    prompt_version: str | None = None
    # The error codes that mark it; empty when any will do.
    codes: frozenset[str] = frozenset()

    def affects(self, line: DemoSeries, prompt_version: str, age: timedelta) -> bool:
        """Whether a run of this series, so long ago, was hit."""
        hours = age / timedelta(hours=1)
        return (
            (line.provider, line.model) == (self.provider, self.model)
            and self.prompt_version in (None, prompt_version)
            and self.until_hours <= hours < self.since_hours
        )


CUT_OFF = DemoIncident(
    "anthropic",
    "claude-haiku-4",
    ONSET_HOURS,
    0.0,
    degraded=0.31,
    repaired=0.20,
    mix={
        ParseErrorType.TRUNCATED: 0.84,
        ParseErrorType.SCHEMA_INVALID: 0.10,
        ParseErrorType.NOT_JSON: 0.06,
    },
)
FORGOTTEN_TOOL = DemoIncident(
    "openai",
    "gpt-4.1-mini",
    FLAWED_SINCE_HOURS,
    FLAWED_UNTIL_HOURS,
    degraded=0.24,
    repaired=0.22,
    mix={ParseErrorType.SCHEMA_INVALID: 0.93, ParseErrorType.NOT_JSON: 0.07},
    prompt_version=FLAWED_PROMPT,
    codes=frozenset({"tool_missing", "missing"}),
)
INCIDENTS = (CUT_OFF, FORGOTTEN_TOOL)


@dataclass(frozen=True, slots=True)
class Odds:
    """What to expect of a run: shares of all runs, and the kinds of failure."""

    degraded: float
    repaired: float
    mix: Mix
    codes: frozenset[str] = frozenset()


def odds_of(
    line: DemoSeries,
    prompt_version: str,
    age: timedelta,
    incidents: Iterable[DemoIncident] = INCIDENTS,
) -> Odds:
    """Return the odds of a run: those of the incident that hits it, or the usual ones."""
    for incident in incidents:
        if incident.affects(line, prompt_version, age):
            return Odds(incident.degraded, incident.repaired, incident.mix, incident.codes)
    return Odds(line.degraded, line.repaired, USUAL)
