"""Background traffic of the demo: two weeks of runs, hour by hour."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from math import cos, pi
from random import Random

from agents.demo.calls import DemoAttempts, Outcome, answers_of, make_calls, pick_answer, pick_kind
from agents.demo.events import MISSPELLED
from agents.demo.story import HOUR, STORY, DemoSeries, Odds, odds_of, prompts_in_use, release_at
from agents.goals.state import SCHEMA_OF_NODE
from diagnostics.verdict.cells import Dimensions
from failsoft.events import CallErrorType

BUSIEST_HOUR = 14
QUIETEST_SHARE = 0.45
WEEKEND_SHARE = 0.7
SATURDAY = 5
SETTLED = timedelta(minutes=1)
"""The minimum age of a run: an unfinished one would look incomplete."""
LOST_SHARE = 0.004
UNKNOWN_TOOL_SHARE = 0.005


def traffic_share(at: datetime) -> float:
    """Return the share of peak traffic at a time (UTC), between 0.3 and 1."""
    hour = at.hour + at.minute / 60
    swing = (1 + cos((hour - BUSIEST_HOUR) * 2 * pi / 24)) / 2
    share = QUIETEST_SHARE + (1 - QUIETEST_SHARE) * swing
    return share * WEEKEND_SHARE if at.weekday() >= SATURDAY else share


@dataclass(slots=True)
class SteadyChance:
    """Draws that keep to a share over any stretch, at irregular intervals.

    Independent draws would sometimes make a healthy series look degraded.
    """

    random: Random
    owed: float = 0.0
    due: float = 0.5

    def happens(self, share: float) -> bool:
        """Draw once at this share; shares may change from draw to draw."""
        self.owed += share
        if self.owed < self.due:
            return False
        self.owed -= 1
        self.due = self.random.uniform(0.1, 0.9)
        return True


def traffic(now: datetime, random: Random, volume: float) -> Iterator[DemoAttempts]:
    """Yield every run of the two weeks before `now`, oldest first in each series.

    `volume` scales the traffic: 1 makes about 25,000 events.
    """
    for series in STORY.series:
        answers = answers_of(SCHEMA_OF_NODE[series.node], series.source)
        for environment, share in STORY.environments.items():
            chances = {name: SteadyChance(random) for name in ("degraded", "repaired")}
            # Rare outcomes start at different offsets.
            for name in ("lost", "unknown_tool"):
                chances[name] = SteadyChance(random, random.uniform(-0.5, 0.5))
            starts = _starts(now, series.peak_runs_per_hour * share * volume, random)
            for number, at in enumerate(starts):
                parts = (series.provider, series.model, series.node, environment, str(number))
                prompt = random.choice(prompts_in_use(series.source, environment, now - at))
                odds = odds_of(series, prompt, now - at)
                pick = partial(pick_answer, answers, odds.codes, random)
                run = DemoAttempts(
                    f"demo-{sha256(' '.join(parts).encode()).hexdigest()[:10]}",
                    place_of(series, environment, prompt, now, at),
                    make_calls(series.pace, _outcomes(odds, chances, random), at, pick, random),
                )
                if run.reason is None and chances["unknown_tool"].happens(UNKNOWN_TOOL_SHARE):
                    run = replace(run, unknown_tool=random.choice(MISSPELLED))
                yield run


def place_of(
    series: DemoSeries, environment: str, prompt: str, now: datetime, at: datetime
) -> Dimensions:
    return Dimensions(
        series.provider,
        series.model,
        prompt,
        SCHEMA_OF_NODE[series.node].value,
        "1",
        series.source,
        release_at(now, now - at),
        series.node,
        environment,
    )


def _starts(now: datetime, peak: float, random: Random) -> Iterator[datetime]:
    owed = random.random()
    for hour in range(STORY.days * 24, 0, -1):
        begin = now - hour * HOUR
        owed += peak * traffic_share(begin)
        count, owed = int(owed), owed % 1
        moments = sorted(random.random() for _ in range(count))
        yield from (min(begin + moment * HOUR, now - SETTLED) for moment in moments)


def _outcomes(odds: Odds, chances: Mapping[str, SteadyChance], random: Random) -> Iterator[Outcome]:
    """Yield the outcomes of a run's calls, at most two."""
    if chances["lost"].happens(LOST_SHARE):
        yield random.choice((CallErrorType.TIMEOUT, CallErrorType.PROVIDER_ERROR))
        return
    degrades = chances["degraded"].happens(odds.degraded)
    if degrades or chances["repaired"].happens(odds.repaired):
        yield pick_kind(odds.mix, random)
    yield pick_kind(odds.mix, random) if degrades else None
