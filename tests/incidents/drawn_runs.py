"""Random runs from a seed: start, series and outcome of each call."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from itertools import accumulate
from random import Random
from typing import Any

from agents.demo.calls import DemoAttempts, Outcome, answers_of, make_calls, pick_answer
from agents.demo.events import MISSPELLED, demo_deploy
from agents.demo.story import HOUR, RunPace
from agents.demo.traffic import SETTLED, traffic_share
from agents.goals.state import SCHEMA_OF_NODE
from diagnostics.ingest.deploy_items import PostedDeploy
from diagnostics.verdict.cells import Dimensions
from failsoft.events import CallErrorType, ParseErrorType
from tests.incidents.scenarios import KINDS, InjectedChange, InjectedIncident
from tests.incidents.traffic_model import (
    SILENT,
    WEAKEST,
    Rates,
    TrafficShape,
    draw_shape,
    draw_world,
)

DAYS = 7
UNKNOWN_TOOL = "unknown_tool"
MEAN_SHARE = 0.66
"""Of peak traffic, over a week."""
MOST_CALLS = 2


@dataclass(frozen=True, slots=True)
class DrawnRun:
    """A run: the outcome of each call (a kind of failure, or None), in order."""

    at: datetime
    place: Dimensions
    calls: tuple[str | None, ...]
    has_unknown_tool: bool = False

    @property
    def is_degraded(self) -> bool:
        """Whether no call brought a valid answer."""
        return self.calls[-1] is not None


@dataclass(frozen=True, slots=True)
class DrawnIncident:
    """A week with an incident at its end; `since` is None if nothing degrades."""

    kind: str
    seed: int
    shape: TrafficShape
    trouble: InjectedIncident
    moment: datetime
    now: datetime

    @property
    def since(self) -> datetime | None:
        return self.moment if self.trouble.cause else None

    @property
    def changes(self) -> list[tuple[datetime, InjectedChange]]:
        """The changes with their times, if deploys are reported."""
        if not self.shape.has_marks:
            return []
        return [(self.moment + change.after, change) for change in self.trouble.changes]

    @property
    def truth(self) -> dict[str, Any]:
        """What a verdict must find."""
        trouble = self.trouble
        return {
            "kind": self.kind,
            "cause": trouble.cause.value if trouble.cause else None,
            "cause_value": trouble.value or None,
            "provider": trouble.provider,
            "model": trouble.model[1] if trouble.model else None,
            "since": self.since,
            "top_kind": trouble.top_kind or None,
        }

    def deploys(self) -> Iterator[PostedDeploy]:
        """Yield the changes before its end."""
        for at, change in self.changes:
            if at < self.now:
                yield demo_deploy(at, change.kind, change.version, change.source)

    def runs(self) -> Iterator[DrawnRun]:
        """Yield every run of the week, hour by hour; the same ones each time."""
        return _runs(self, _chance(self.kind, self.seed, "runs"))


def make_incident(
    kind: str,
    seed: int,
    now: datetime,
    runs_per_hour: float | None = None,
    shape: TrafficShape | None = None,
    weakest: float = WEAKEST,
) -> DrawnIncident:
    """Return an incident of a kind, in a week that ends at `now`; KeyError for another kind.

    The seed also decides its shape, unless one is passed; `weakest` is the least share
    of calls that fail more.
    """
    random = _chance(kind, seed, "world")
    drawn = draw_shape(random, weakest)
    shape_used = shape or drawn
    if runs_per_hour is not None:
        shape_used = replace(shape_used, runs_per_hour=runs_per_hour)
    world = draw_world(shape_used, random)
    trouble = KINDS[kind](world, shape_used, random)
    ago = timedelta(hours=shape_used.bad_hours, minutes=random.uniform(-30, 30))
    return DrawnIncident(kind, seed, shape_used, trouble, now - ago, now)


def _chance(*parts: object) -> Random:
    return Random(" ".join(map(str, parts)))


def _runs(incident: DrawnIncident, random: Random) -> Iterator[DrawnRun]:
    world, begin = incident.trouble.world, incident.now - timedelta(days=DAYS)
    draw_place = _place_drawer(world.shares, random)
    draw_moved = _place_drawer(world.moved or world.shares, random)
    peak, owed = incident.shape.runs_per_hour / MEAN_SHARE, 0.0
    worse = incident.trouble.worse or world.rates
    moved_at = incident.moment + incident.trouble.moved_after
    for hour in range(DAYS * 24):
        start = begin + hour * HOUR
        owed += peak * traffic_share(start) * random.uniform(0.8, 1.2)
        count, owed = int(owed), owed % 1
        for offset in sorted(random.random() for _ in range(count)):
            at = min(start + offset * HOUR, incident.now - SETTLED)
            place = (draw_moved if at >= moved_at else draw_place)()
            rates = (worse if at >= incident.moment else world.rates)(place)
            yield _run(at, place, rates, random)


def _place_drawer(shares: Mapping[Dimensions, float], random: Random) -> Callable[[], Dimensions]:
    places, sums = list(shares), list(accumulate(shares.values()))
    return lambda: random.choices(places, cum_weights=sums)[0]


def _run(at: datetime, place: Dimensions, rates: Rates, random: Random) -> DrawnRun:
    calls: list[str | None] = []
    while len(calls) < MOST_CALLS:
        calls.append(_kind(rates, random))
        if calls[-1] is None or calls[-1] in SILENT:
            break
    has_unknown_tool = calls[-1] is None and random.random() < rates.get(UNKNOWN_TOOL, 0.003)
    return DrawnRun(at, place, tuple(calls), has_unknown_tool)


def _kind(rates: Rates, random: Random) -> str | None:
    drawn = random.random()
    for kind, share in rates.items():
        if kind == UNKNOWN_TOOL:
            continue
        drawn -= share
        if drawn < 0:
            return kind
    return None


PACES = {"plan": RunPace(2_100, 310), "next_step": RunPace(1_000, 120)}


def attempts_of(incident: DrawnIncident, random: Random) -> Iterator[DemoAttempts]:
    """Yield every run of an incident, in order of their start."""
    for number, run in enumerate(incident.runs()):
        parts = f"{incident.kind} {incident.seed} {incident.now.isoformat()} {number}"
        answers = answers_of(SCHEMA_OF_NODE[run.place.node], run.place.source)
        pick = partial(pick_answer, answers, frozenset(), random)
        outcomes = [_outcome(kind) for kind in run.calls]
        yield DemoAttempts(
            correlation_id=f"demo-{sha256(parts.encode()).hexdigest()[:10]}",
            place=run.place,
            calls=make_calls(PACES[run.place.node], outcomes, run.at, pick, random),
            unknown_tool=random.choice(MISSPELLED) if run.has_unknown_tool else None,
        )


def _outcome(kind: str | None) -> Outcome:
    if kind in SILENT:
        return CallErrorType(kind.removeprefix("call_"))
    return ParseErrorType(kind) if kind else None
