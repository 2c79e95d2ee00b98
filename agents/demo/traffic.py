"""Background traffic of the demo: two weeks of runs, hour by hour."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from math import cos, pi
from random import Random

from agents.demo.calls import (
    SCHEMA_OF_NODE,
    DemoAttempts,
    Outcome,
    Repertoire,
    make_calls,
    pick_kind,
    repertoires,
)
from agents.demo.events import MISSPELLED
from agents.demo.story import HOUR, STORY, DemoSeries, Odds, odds_of, prompts_in_use, release_at
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


def traffic(now: datetime, random: Random, volume: float = 1.0) -> Iterator[DemoAttempts]:
    """Yield every run of the two weeks before `now`, oldest first in each series.

    `volume` scales the traffic: 1 makes about 25,000 events.
    """
    answers = repertoires(random)
    for series in STORY.series:
        for environment, share in STORY.environments.items():
            # Rare outcomes start at different offsets.
            rare = [SteadyChance(random, random.uniform(-0.5, 0.5)) for _ in range(2)]
            draws = _OutcomeDraws(random, SteadyChance(random), SteadyChance(random), *rare)
            starts = _starts(now, series.peak_runs_per_hour * share * volume, random)
            for number, at in enumerate(starts):
                parts = (series.provider, series.model, series.node, environment, str(number))
                name = f"demo-{sha256(' '.join(parts).encode()).hexdigest()[:10]}"
                prompt = random.choice(prompts_in_use(series.source, environment, now - at))
                place = place_of(series, environment, prompt, now, at)
                odds = odds_of(series, prompt, now - at)
                yield draws.run(name, place, series, odds, at, answers[series.source])


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


@dataclass(slots=True)
class _OutcomeDraws:
    """The random outcomes of one series in one environment."""

    random: Random
    degraded: SteadyChance
    repaired: SteadyChance
    lost: SteadyChance
    unknown_tool: SteadyChance

    def run(
        self,
        name: str,
        place: Dimensions,
        series: DemoSeries,
        odds: Odds,
        at: datetime,
        answers: Repertoire,
    ) -> DemoAttempts:
        schema = SCHEMA_OF_NODE[series.node]
        answer = partial(answers.pick, schema, random=self.random, codes=odds.codes)
        outcomes = self._outcomes(odds)
        calls = make_calls(series.node, series.pace, outcomes, at, answer, self.random)
        ladder = DemoAttempts(name, place, calls)
        if ladder.reason is None and self.unknown_tool.happens(UNKNOWN_TOOL_SHARE):
            return DemoAttempts(name, place, calls, unknown_tool=self.random.choice(MISSPELLED))
        return ladder

    def _outcomes(self, odds: Odds) -> Iterator[Outcome]:
        """Yield the outcomes of a run's calls, at most two."""
        if self.lost.happens(LOST_SHARE):
            yield self.random.choice((CallErrorType.TIMEOUT, CallErrorType.PROVIDER_ERROR))
            return
        degrades = self.degraded.happens(odds.degraded)
        if degrades or self.repaired.happens(odds.repaired):
            yield pick_kind(odds.mix, self.random)
        yield pick_kind(odds.mix, self.random) if degrades else None
