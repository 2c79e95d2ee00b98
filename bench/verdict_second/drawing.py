"""From a world and a story to runs, and the truth of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from random import Random

from agents.demo.drawn_runs import DrawnRun
from bench.verdict_cases import OK, Truth
from bench.verdict_second.worlds import SILENT, Shares, World
from diagnostics.verdict.cells import Dimensions
from diagnostics.verdict.hypotheses import ReportedDeploy

HOUR = timedelta(hours=1)
SETTLED = timedelta(minutes=1)

Extra = Callable[[Dimensions, datetime], Shares]
Move = Callable[[Dimensions, datetime, Random], Dimensions]


def nothing(_: Dimensions, __: datetime) -> Shares:
    """Nothing fails more."""
    return {}


def staying(place: Dimensions, _: datetime, __: Random) -> Dimensions:
    """Calls stay where they are."""
    return place


@dataclass(frozen=True, slots=True)
class Story:
    """What happens: what fails more, which calls move where, and the truth."""

    cause: str = OK
    value: str = ""
    top_kind: str = ""
    worse: Extra = nothing
    move: Move = staying
    told: tuple[ReportedDeploy, ...] = ()
    surge: float = 1.0
    """How many times as many runs there are from then on."""
    without_calls: bool = False
    """Whether only the ends of runs are told."""
    late: timedelta = timedelta(0)
    """How far the clock of one source is behind."""


@dataclass(frozen=True, slots=True)
class SecondCase:
    """A world with a story at its end."""

    kind: str
    seed: int
    world: World
    story: Story
    moment: datetime
    now: datetime

    @property
    def truth(self) -> Truth:
        """What happened."""
        story = self.story
        since = None if story.cause == OK else self.moment
        return Truth(story.cause, story.value, story.top_kind, since)

    def told(self) -> list[ReportedDeploy]:
        """Give the deploys as they were told."""
        return [one for one in self.story.told if one.at <= self.now]

    def runs(self) -> Iterator[DrawnRun]:
        """Give every run, the same ones each time."""
        begin = self.now - timedelta(days=self.world.days)
        yield from self._draw(begin, self.moment, "before")
        yield from self._draw(self.moment, self.now - SETTLED, "after")

    def failures_beyond(self) -> int:
        """Count the calls that fail since then, less those that would have anyway."""
        seen, usual = 0, 0.0
        for run in self._draw(self.moment, self.now - SETTLED, "after"):
            seen += sum(1 for call in run.calls if call)
            usual += sum(self._usual(run.place).values()) * len(run.calls)
        return round(seen - usual)

    def _draw(self, begin: datetime, end: datetime, part: str) -> Iterator[DrawnRun]:
        random = _chance(self.kind, self.seed, part)
        places = list(self.world.weights)
        sums = list(accumulate(self.world.weights.values()))
        surge = self.story.surge if part == "after" else 1.0
        at = begin
        while at < end:
            rate = max(self.world.runs_per_hour * self.world.busy(at) * surge, 0.5)
            at += timedelta(hours=random.expovariate(rate))
            place = random.choices(places, cum_weights=sums)[0]
            moved = self.story.move(place, at, random)
            if at < end:
                yield self._run(moved, at, random)

    def _run(self, place: Dimensions, at: datetime, random: Random) -> DrawnRun:
        shares = self._usual(place)
        worse = self.story.worse(place, at)
        if worse:
            shares = dict(shares)
            for kind, more in worse.items():
                shares[kind] = shares.get(kind, 0.0) + more
        calls: list[str | None] = []
        while len(calls) < self.world.tries and (not calls or calls[-1]):
            calls.append(_pick(shares, random))
            if len(calls) == 1 and calls[0]:
                shares = {
                    k: min(s * self.world.stubborn, max(s, 0.45)) if s else s
                    for k, s in shares.items()
                }
            if calls[-1] in SILENT and random.random() < 0.5:
                break
        if self.story.late and place.source == self.world.values("source")[0]:
            at = max(at - self.story.late, self.now - timedelta(days=self.world.days))
        if self.story.without_calls:
            ended = "other_invalid" if calls[-1] else None
            return DrawnRun(at, place, (ended,))
        return DrawnRun(at, place, tuple(calls))

    def _usual(self, place: Dimensions) -> Shares:
        known = self.world.usual.get(place)
        if known is not None:
            return known
        alike = (
            shares
            for origin, shares in self.world.usual.items()
            if origin.series == place.series and origin.source == place.source
        )
        return next(alike, {"schema_invalid": 0.02})


def _pick(shares: Shares, random: Random) -> str | None:
    drawn = random.random()
    for kind, share in shares.items():
        drawn -= share
        if drawn < 0:
            return kind
    return None


def _chance(*parts: object) -> Random:
    return Random(" ".join(map(str, parts)))  # noqa: S311 - a story, not a secret
