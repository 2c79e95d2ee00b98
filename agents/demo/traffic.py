"""The background of the demonstration: two weeks of runs, hour by hour."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from math import cos, pi
from random import Random

from agents.demo.attempts import (
    SCENARIOS,
    SCHEMA_OF_NODE,
    DemoCall,
    Ladder,
    Repertoire,
    answer_call,
    lost_call,
    repertoire_of,
)
from agents.demo.fleet import DAYS, ENVIRONMENTS, LINES, DemoSeries, prompts_in_use, release_at
from agents.demo.incidents import Odds, odds_of
from failsoft.events import CallErrorType

BUSIEST_HOUR = 14
QUIETEST_SHARE = 0.45
WEEKEND_SHARE = 0.7
SATURDAY = 5


def traffic_share(at: datetime) -> float:
    """Return the share of peak traffic at a moment (UTC), between 0.3 and 1."""
    hour = at.hour + at.minute / 60
    swing = (1 + cos((hour - BUSIEST_HOUR) * 2 * pi / 24)) / 2
    share = QUIETEST_SHARE + (1 - QUIETEST_SHARE) * swing
    return share * WEEKEND_SHARE if at.weekday() >= SATURDAY else share


@dataclass(slots=True)
class SteadyChance:
    """A share that is met over any stretch of draws, at irregular distances.

    Plain chance would make a healthy series look ill now and then.
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


HOUR = timedelta(hours=1)
SETTLED = timedelta(minutes=1)
"""Nothing is younger: a run in the making looks like one without an end."""
PAUSE = timedelta(milliseconds=40)
LOST_SHARE = 0.004
UNKNOWN_TOOL_SHARE = 0.005
LOST = ((CallErrorType.TIMEOUT, 30_000), (CallErrorType.PROVIDER_ERROR, 2_400))
NEAREST = {
    "orders.fetch": "orders.get",
    "ticket.search": "tickets.search",
    "metric.query": "metrics.query",
    "mail.sent": "mail.send",
}
MISSPELLED = tuple(NEAREST)


@dataclass(slots=True)
class Luck:
    """The chances of one series."""

    random: Random
    degraded: SteadyChance
    repaired: SteadyChance
    lost: SteadyChance
    unknown_tool: SteadyChance


def luck_of(random: Random) -> Luck:
    """Deal fresh chances to a series; rare things start out of step with each other."""
    rare = [SteadyChance(random, owed=random.uniform(-0.5, 0.5)) for _ in range(2)]
    return Luck(random, SteadyChance(random), SteadyChance(random), *rare)


def traffic(now: datetime, random: Random, volume: float = 1.0) -> Iterator[Ladder]:
    """Tell every run of the fortnight before `now`, oldest first in each series.

    `volume` scales the traffic: 1 makes about 25,000 events.
    """
    repertoires = {
        source: repertoire_of(scenarios, random) for source, scenarios in SCENARIOS.items()
    }
    for line in LINES:
        for environment, share in ENVIRONMENTS.items():
            luck = luck_of(random)
            for number, called_at in enumerate(_starts(line, share * volume, now, random)):
                correlation_id = _correlation_id(line, environment, number)
                yield _run(
                    line,
                    environment,
                    correlation_id,
                    called_at,
                    now,
                    repertoires[line.source],
                    luck,
                )


def _correlation_id(line: DemoSeries, environment: str, number: int) -> str:
    parts = (line.provider, line.model, line.node, environment, str(number))
    return f"demo-{sha256(' '.join(parts).encode()).hexdigest()[:10]}"


def _starts(line: DemoSeries, share: float, now: datetime, random: Random) -> Iterator[datetime]:
    """Yield when runs begin: about as many each hour as the rhythm says."""
    owed = random.random()
    for hour in range(DAYS * 24, 0, -1):
        begin = now - hour * HOUR
        owed += line.peak_runs_per_hour * share * traffic_share(begin)
        count, owed = int(owed), owed % 1
        moments = sorted(random.random() for _ in range(count))
        yield from (min(begin + moment * HOUR, now - SETTLED) for moment in moments)


def _run(
    line: DemoSeries,
    environment: str,
    correlation_id: str,
    called_at: datetime,
    now: datetime,
    repertoire: Repertoire,
    luck: Luck,
) -> Ladder:
    age = now - called_at
    prompt_version = luck.random.choice(prompts_in_use(line.source, environment, age))
    odds = odds_of(line, prompt_version, age)
    calls, reason = _calls(line, called_at, odds, repertoire, luck)
    lucky = reason is None and luck.unknown_tool.happens(UNKNOWN_TOOL_SHARE)
    return Ladder(
        correlation_id=correlation_id,
        line=line,
        environment=environment,
        prompt_version=prompt_version,
        release=release_at(now, age),
        cycle=1,
        calls=calls,
        reason=reason,
        unknown_tool=luck.random.choice(MISSPELLED) if lucky else None,
    )


def _calls(
    line: DemoSeries, called_at: datetime, odds: Odds, repertoire: Repertoire, luck: Luck
) -> tuple[tuple[DemoCall, ...], str | None]:
    """Make the calls of a run and say why it degraded, if it did."""
    schema, random = SCHEMA_OF_NODE[line.node], luck.random
    if luck.lost.happens(LOST_SHARE):
        error_type, latency_ms = random.choice(LOST)
        timed_out = error_type is CallErrorType.TIMEOUT
        reason = "timeout" if timed_out else "provider_failed"
        return (lost_call(line, 1, error_type, called_at, latency_ms),), reason
    degraded = luck.degraded.happens(odds.degraded)
    if not degraded and not luck.repaired.happens(odds.repaired):
        good = repertoire.pick_good(schema, random)
        return (answer_call(line, 1, good, called_at, random),), None
    spoiled = repertoire.pick_spoiled(schema, odds, random)
    first = answer_call(line, 1, spoiled, called_at, random)
    pick = repertoire.pick_spoiled(schema, odds, random) if degraded else None
    written = pick or repertoire.pick_good(schema, random)
    second = answer_call(line, 2, written, first.ended_at + PAUSE, random)
    return (first, second), f"{line.node}_parse_failed" if degraded else None
