"""From a seed to runs: when each began, where, and what came of its calls."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import accumulate
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
from agents.demo.fleet import OPERATIONS, SUPPORT, DemoSeries
from agents.demo.incident_scenarios import KINDS, InjectedChange, Trouble
from agents.demo.incidents import Odds
from agents.demo.traffic import MISSPELLED, PAUSE, traffic_share
from agents.demo.traffic_model import SILENT, WEAKEST, Rates, TrafficShape, draw_shape, draw_world
from diagnostics.verdict.cells import Dimensions
from failsoft.events import CallErrorType, ParseErrorType

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
    place: Dimensions
    calls: tuple[str | None, ...]
    has_unknown_tool: bool = False

    @property
    def is_degraded(self) -> bool:
        """Whether no call brought a valid answer."""
        return self.calls[-1] is not None


@dataclass(frozen=True, slots=True)
class DrawnIncident:
    """A week and what happened at its end; `since` is None where nothing degrades."""

    kind: str
    seed: int
    shape: TrafficShape
    trouble: Trouble
    moment: datetime
    now: datetime

    @property
    def since(self) -> datetime | None:
        """When it began."""
        return self.moment if self.trouble.cause else None

    @property
    def changes(self) -> list[tuple[datetime, InjectedChange]]:
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
    shape: TrafficShape | None = None,
    weakest: float = WEAKEST,
) -> DrawnIncident:
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
    return DrawnIncident(kind, seed, used, trouble, now - ago, now)


def _chance(*parts: object) -> Random:
    return Random(" ".join(map(str, parts)))  # noqa: S311 - a story, not a secret


def _runs(incident: DrawnIncident, random: Random) -> Iterator[DrawnRun]:
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

    def __init__(self, shares: Mapping[Dimensions, float]) -> None:
        self._places = list(shares)
        self._sums = list(accumulate(shares.values()))

    def pick(self, random: Random) -> Dimensions:
        return random.choices(self._places, cum_weights=self._sums)[0]


def _run(at: datetime, place: Dimensions, rates: Rates, random: Random) -> DrawnRun:
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


LOST: Mapping[str, tuple[CallErrorType, int]] = {
    "call_timeout": (CallErrorType.TIMEOUT, 30_000),
    "call_provider_error": (CallErrorType.PROVIDER_ERROR, 2_400),
    "call_rate_limited": (CallErrorType.RATE_LIMITED, 300),
}
REASONS = {CallErrorType.TIMEOUT: "timeout"}
LATENCY_MS = {"plan": 2_100, "next_step": 1_000}
TOKENS = {"plan": 310, "next_step": 120}
NOTHING_USUAL = (0.0, 0.0)


def ladders_of(incident: DrawnIncident, random: Random) -> Iterator[Ladder]:
    """Tell every run of an incident, in the order in which they began."""
    repertoires = {
        source: repertoire_of(scenarios, random) for source, scenarios in SCENARIOS.items()
    }
    for number, run in enumerate(incident.runs()):
        source = OPERATIONS if run.place.source == OPERATIONS else SUPPORT
        reference = _reference(incident, number)
        yield _ladder(run, reference, repertoires[source], random)


def _reference(incident: DrawnIncident, number: int) -> str:
    parts = f"{incident.kind} {incident.seed} {incident.now.isoformat()} {number}"
    return f"demo-{sha256(parts.encode()).hexdigest()[:10]}"


def _line(place: Dimensions) -> DemoSeries:
    return DemoSeries(
        place.provider or "",
        place.model or "",
        place.node,
        0.0,
        *NOTHING_USUAL,
        LATENCY_MS[place.node],
        TOKENS[place.node],
        place.source or "",
    )


def _ladder(run: DrawnRun, reference: str, repertoire: Repertoire, random: Random) -> Ladder:
    line, place = _line(run.place), run.place
    calls: list[DemoCall] = []
    for number, kind in enumerate(run.calls, start=1):
        begun = calls[-1].ended_at + PAUSE if calls else run.at
        if kind is not None and kind in LOST:
            error_type, took = LOST[kind]
            calls.append(lost_call(line, number, error_type, begun, took))
            continue
        schema = SCHEMA_OF_NODE[place.node]
        if kind is None:
            written = repertoire.pick_good(schema, random)
        else:
            odds = Odds(0.0, 0.0, {ParseErrorType(kind): 1.0})
            written = repertoire.pick_spoiled(schema, odds, random)
        calls.append(answer_call(line, number, written, begun, random))
    return Ladder(
        correlation_id=reference,
        line=line,
        environment=place.environment or "",
        prompt_version=place.prompt_version or "",
        release=place.release or "",
        cycle=1,
        calls=tuple(calls),
        reason=_reason(calls[-1], place) if run.is_degraded else None,
        unknown_tool=random.choice(MISSPELLED) if run.has_unknown_tool else None,
        schema_version=place.schema_version or "1",
    )


def _reason(last: DemoCall, place: Dimensions) -> str:
    if last.error_type is None:
        return f"{place.node}_parse_failed"
    return REASONS.get(last.error_type, "provider_failed")
