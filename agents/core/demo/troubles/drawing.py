"""From a seed to runs: when each began, where, and what came of its calls."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate
from random import Random

from agents.core.demo.rhythm import traffic_share
from agents.core.demo.troubles.kinds import KINDS, Change, Trouble
from agents.core.demo.troubles.worlds import (
    SILENT,
    WEAKEST,
    Rates,
    Shape,
    draw_shape,
    draw_world,
)
from diagnostics.core.verdict.cells import Place

DAYS = 7
HOUR = timedelta(hours=1)
SETTLED = timedelta(minutes=1)
"""Nothing is younger: a run in the making looks like one without an end."""
UNKNOWN_TOOL = "unknown_tool"
MEAN_SHARE = 0.66
"""Of peak traffic, over a week."""
MOST_CALLS = 2


@dataclass(frozen=True, slots=True)
class DrawnRun:
    """A run: what each of its calls brought (a kind of failure, or None), in order."""

    at: datetime
    place: Place
    calls: tuple[str | None, ...]
    has_unknown_tool: bool = False

    @property
    def is_degraded(self) -> bool:
        """Whether no call brought a valid answer."""
        return self.calls[-1] is not None


@dataclass(frozen=True, slots=True)
class Incident:
    """A week and what happened at its end; `since` is None where nothing degrades."""

    kind: str
    seed: int
    shape: Shape
    trouble: Trouble
    moment: datetime
    now: datetime

    @property
    def since(self) -> datetime | None:
        """When it began."""
        return self.moment if self.trouble.cause else None

    @property
    def changes(self) -> list[tuple[datetime, Change]]:
        """What was changed when, if it was told."""
        if not self.shape.has_marks:
            return []
        return [(self.moment + one.after, one) for one in self.trouble.changes]

    @property
    def truth(self) -> dict[str, str | None]:
        """What a verdict must find out."""
        trouble = self.trouble
        return {
            "kind": self.kind,
            "cause": trouble.cause.value if trouble.cause else None,
            "cause_value": trouble.value or None,
            "provider": trouble.provider,
            "model": trouble.model[1] if trouble.model else None,
            "since": self.since.isoformat() if self.since else None,
            "top_kind": trouble.top_kind or None,
        }

    def runs(self) -> Iterator[DrawnRun]:
        """Draw every run of the week, hour by hour; the same ones each time."""
        return _runs(self, _chance(self.kind, self.seed, "runs"))


def make_incident(
    kind: str,
    seed: int,
    now: datetime,
    runs_per_hour: float | None = None,
    shape: Shape | None = None,
    weakest: float = WEAKEST,
) -> Incident:
    """Make one incident of a kind that ends now; KeyError for another kind.

    The seed decides its shape too, besides what is asked for; `weakest` is the least share
    of calls that fail more.
    """
    random = _chance(kind, seed, "world")
    drawn = draw_shape(random, weakest)
    used = shape or drawn
    if runs_per_hour is not None:
        used = replace(used, runs_per_hour=runs_per_hour)
    world = draw_world(used, random)
    trouble = KINDS[kind](world, used, random)
    ago = timedelta(hours=used.bad_hours, minutes=random.uniform(-30, 30))
    return Incident(kind, seed, used, trouble, now - ago, now)


def _chance(*parts: object) -> Random:
    return Random(" ".join(map(str, parts)))  # noqa: S311 - a story, not a secret


def _runs(incident: Incident, random: Random) -> Iterator[DrawnRun]:
    world, begin = incident.trouble.world, incident.now - timedelta(days=DAYS)
    calm = _Wheel(world.shares)
    moved = _Wheel(world.moved or world.shares)
    peak, owed = incident.shape.runs_per_hour / MEAN_SHARE, 0.0
    worse = incident.trouble.worse or world.rates
    moves = incident.moment + incident.trouble.moved_after
    for hour in range(DAYS * 24):
        start = begin + hour * HOUR
        owed += peak * traffic_share(start) * random.uniform(0.8, 1.2)
        count, owed = int(owed), owed % 1
        for offset in sorted(random.random() for _ in range(count)):
            at = min(start + offset * HOUR, incident.now - SETTLED)
            place = (moved if at >= moves else calm).pick(random)
            rates = (worse if at >= incident.moment else world.rates)(place)
            yield _run(at, place, rates, random)


class _Wheel:
    """Places by their shares, spun once a run."""

    def __init__(self, shares: Mapping[Place, float]) -> None:
        self._places = list(shares)
        self._sums = list(accumulate(shares.values()))

    def pick(self, random: Random) -> Place:
        return random.choices(self._places, cum_weights=self._sums)[0]


def _run(at: datetime, place: Place, rates: Rates, random: Random) -> DrawnRun:
    calls: list[str | None] = []
    while len(calls) < MOST_CALLS:
        calls.append(_kind(rates, random))
        if calls[-1] is None or calls[-1] in SILENT:
            break
    asked_for = calls[-1] is None and random.random() < rates.get(UNKNOWN_TOOL, 0.003)
    return DrawnRun(at, place, tuple(calls), asked_for)


def _kind(rates: Rates, random: Random) -> str | None:
    drawn = random.random()
    for kind, share in rates.items():
        if kind == UNKNOWN_TOOL:
            continue
        drawn -= share
        if drawn < 0:
            return kind
    return None
