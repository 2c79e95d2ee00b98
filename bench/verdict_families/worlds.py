"""Traffic of a project as streams of calls, and what happens to it."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

Values = tuple[tuple[str, str], ...]
Answer = tuple[str, str]
Answers = frozenset[Answer]

NOISES = (0.0, 0.0, 0.05, 0.15, 0.4)
KINDS = ("not_json", "truncated", "schema_invalid", "refusal", "call_timeout", "empty_output")


@dataclass(frozen=True, slots=True)
class Stream:
    """Calls that agree in every dimension: per hour, and how many of them fail, and how."""

    values: Values
    per_hour: float
    rate: float
    kinds: Mapping[str, float]
    usual: float | None = None
    """The rate without any cause, if one has raised it."""

    @property
    def own_rate(self) -> float:
        """Return the rate without any cause."""
        return self.rate if self.usual is None else self.usual

    def get(self, dimension: str) -> str:
        return dict(self.values).get(dimension, "")

    def with_values(self, **changed: str) -> "Stream":
        return replace(self, values=tuple(sorted({**dict(self.values), **changed}.items())))


@dataclass(slots=True)
class Counts:
    """Calls and failures by kind."""

    calls: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def failures(self) -> int:
        return self.kinds.total()


@dataclass(frozen=True, slots=True)
class Drawn:
    """Counts of one story, and what is true of it."""

    family: str
    seed: int
    before: Mapping[Values, Counts]
    after: Mapping[Values, Counts]
    slots: Mapping[str, tuple[tuple[int, int], ...]]
    """Calls and failures of each hour before, by model."""
    hours_before: float
    hours_after: float
    first_seen: Mapping[tuple[str, str], float]
    """Hours from the onset to the first call of each new value."""
    deploys: tuple[tuple[float, str, str], ...]
    """Hours from the onset, dimension and value."""
    truths: tuple[Answers, ...]
    """For each cause the answers that are right; none where nothing got worse."""
    hit: tuple[frozenset[Values], ...]
    """For each cause the cells that it touches."""
    abstain: bool
    """Whether nothing more can be known than that something got worse."""
    begins: tuple[float, ...] = ()
    """Hours from the onset to those of later causes."""

    @property
    def models(self) -> int:
        """Return how many models are called after the onset."""
        return len({dict(values)["model"] for values in self.after})


@dataclass(slots=True)
class World:
    """A project before and after one moment."""

    random: random.Random
    before: list[Stream]
    after: list[Stream]
    hours_before: float
    hours_after: float
    noise: float
    tau: float
    first_seen: dict[tuple[str, str], float] = field(default_factory=dict)
    deploys: list[tuple[float, str, str]] = field(default_factory=list)
    truths: list[Answers] = field(default_factory=list)
    hit: list[Callable[[Stream], bool]] = field(default_factory=list)
    abstain: bool = False
    late: float = 0.0
    """Share of the stretch after the onset that counts as before."""
    earlier: list[tuple[float, list[Stream]]] = field(default_factory=list)
    """What is called after the onset until a later cause begins, by the share until then."""

    def begin_at(self, share: float) -> None:
        """Let what changes from now on change later in the stretch after the onset."""
        if share:
            self.earlier.append((share, list(self.after)))

    @property
    def phases(self) -> list[tuple[float, float, list[Stream]]]:
        """Return what is called after the onset: from and to which share of the stretch."""
        ends = [*self.earlier, (1.0, self.after)]
        begins = [0.0, *(share for share, _ in self.earlier)]
        return [(begin, end, some) for begin, (end, some) in zip(begins, ends, strict=True)]

    def change(self, where: Callable[[Stream], bool], how: Callable[[Stream], Stream]) -> None:
        """Change streams after the onset."""
        self.after = [how(stream) if where(stream) else stream for stream in self.after]

    def rise(
        self, where: Callable[[Stream], bool], kind: str, to: float, answers: Iterable[Answer]
    ) -> None:
        """Let streams fail more often with a kind, up to about a rate; differing inside.

        What another cause makes fail does not fail twice.
        """
        chosen = [stream for stream in self.after if where(stream)]
        base = sum(s.own_rate * s.per_hour for s in chosen) / sum(s.per_hour for s in chosen)
        delta = _logit(max(to, base + 0.08)) - _logit(base)
        is_silent = kind.startswith("call_")

        def worse(stream: Stream) -> Stream:
            shift, own = delta + self.random.gauss(0, self.tau), stream.own_rate
            hit = (min(0.98, _expit(_logit(own) + max(shift, 0.4))) - own) / (1 - own)
            rate = stream.rate + (1 - stream.rate) * hit
            # Only what was answered can be a bad answer.
            kinds = {
                name: share * stream.rate * ((1 - hit) if is_silent and name[:5] != "call_" else 1)
                for name, share in stream.kinds.items()
            }
            kinds[kind] = kinds.get(kind, 0) + rate - sum(kinds.values())
            kinds = {name: share / rate for name, share in kinds.items()}
            return replace(stream, rate=rate, kinds=kinds, usual=own)

        self.change(where, worse)
        self.truths.append(frozenset(answers))
        self.hit.append(where)

    def add_new(self, dimension: str, value: str, *, first: float = 0.0, told: bool) -> None:
        """Note that a value is new, and perhaps reported as a deploy."""
        self.first_seen[dimension, value] = first
        if told:
            self.deploys.append((first, dimension, value))

    def draw(self, family: str, seed: int) -> Drawn:
        noise = Noise(self.random, self.noise)
        late = self.late * self.hours_after
        before, slots = _count(self.random, self.before, self.hours_before, noise)
        after: dict[Values, Counts] = {}
        for begin, end, streams in self.phases:
            hours = max((end - begin) * self.hours_after - late, 0.0)
            _add(after, _count(self.random, streams, hours, noise)[0])
        called = [stream for _, _, streams in self.phases for stream in streams]
        if late:
            leaked, _ = _count(self.random, self.after, late, noise)
            _add(before, leaked)
        return Drawn(
            family,
            seed,
            before,
            after,
            slots,
            self.hours_before,
            self.hours_after - late,
            self.first_seen,
            tuple(self.deploys),
            tuple(self.truths),
            tuple(frozenset(s.values for s in called if where(s)) for where in self.hit),
            self.abstain,
            tuple(share * self.hours_after for share, _ in self.earlier),
        )


def _add(counts: dict[Values, Counts], more: Mapping[Values, Counts]) -> None:
    for values, added in more.items():
        known = counts.setdefault(values, Counts())
        known.calls += added.calls
        known.kinds += added.kinds


@dataclass(slots=True)
class Noise:
    """Rates of an hour vary by model and by source: squared variation of a gamma."""

    random: random.Random
    squared: float

    def of_hour(self) -> float:
        """Return a factor with mean 1."""
        if not self.squared:
            return 1.0
        return self.random.gammavariate(1 / self.squared, self.squared)


def _count(
    draw: random.Random, streams: Iterable[Stream], hours: float, noise: Noise
) -> tuple[dict[Values, Counts], dict[str, tuple[tuple[int, int], ...]]]:
    """Draw calls and failures hour by hour."""
    counts: dict[Values, Counts] = {}
    slots: dict[str, list[tuple[int, int]]] = {}
    streams = list(streams)
    whole = max(1, math.ceil(hours))
    for hour in range(whole):
        length = min(1.0, hours - hour)
        factors: dict[str, float] = {}
        totals: dict[str, list[int]] = {}
        for stream in streams:
            model = stream.get("model")
            factor = factors.setdefault(model, noise.of_hour())
            calls = poisson(draw, stream.per_hour * length)
            failures = binomial(draw, calls, min(0.98, stream.rate * factor))
            cell = counts.setdefault(stream.values, Counts())
            cell.calls += calls
            for kind, share in _split(draw, failures, stream.kinds):
                cell.kinds[kind] += share
            total = totals.setdefault(model, [0, 0])
            total[0] += calls
            total[1] += failures
        for model, (calls, failures) in totals.items():
            slots.setdefault(model, []).append((calls, failures))
    return counts, {model: tuple(rows) for model, rows in slots.items()}


def _split(
    draw: random.Random, failures: int, kinds: Mapping[str, float]
) -> Iterable[tuple[str, int]]:
    left, weight = failures, sum(kinds.values())
    for kind, share in kinds.items():
        if not left:
            return
        taken = binomial(draw, left, min(1.0, share / weight)) if weight > 0 else left
        weight -= share
        left -= taken
        if taken:
            yield kind, taken
    if left:
        yield next(iter(kinds)), left


def poisson(draw: random.Random, mean: float) -> int:
    if mean > 50:
        return max(0, round(draw.gauss(mean, math.sqrt(mean))))
    limit, product, count = math.exp(-mean), draw.random(), 0
    while product > limit:
        product *= draw.random()
        count += 1
    return count


def binomial(draw: random.Random, calls: int, rate: float) -> int:
    if calls * min(rate, 1 - rate) > 30:
        spread = math.sqrt(calls * rate * (1 - rate))
        return min(calls, max(0, round(draw.gauss(calls * rate, spread))))
    return sum(draw.random() < rate for _ in range(calls))


def _logit(rate: float) -> float:
    rate = min(max(rate, 1e-4), 1 - 1e-4)
    return math.log(rate / (1 - rate))


def _expit(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))
