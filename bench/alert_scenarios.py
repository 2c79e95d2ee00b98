"""Traffic of one series, healthy and degraded, in the shapes that fool alert rules."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import pi, sin
from random import Random

DAY = 86_400.0
WEEK = 7 * DAY
Rate = Callable[[float], float]

HEALTHY: dict[str, Callable[[Random, float], Rate]] = {
    "independent": lambda _, share: lambda _at: share,
    "rhythm": lambda _, share: lambda at: share * (1 + 0.6 * sin(2 * pi * at / DAY)) * _weekly(at),
    "both": lambda _, share: (
        lambda at: share * (1 + 0.6 * sin(2 * pi * at / DAY)) * _weekly(at) * (1 + at / (4 * WEEK))
    ),
    "drift": lambda _, share: lambda at: share * (1 + at / (4 * WEEK)),
    "restless": lambda random, share: _Restless(random, share),
    "sticky": lambda _, share: lambda _at: share,
    "bursts": lambda _, share: lambda _at: share,
}


def _weekly(at: float) -> float:
    return 1 + 0.3 * sin(2 * pi * at / WEEK)


class _Restless:
    """A rate that is another one every hour, by 60 %."""

    def __init__(self, random: Random, share: float) -> None:
        self._random, self._share = random, share
        self._by_hour: dict[int, float] = {}

    def __call__(self, at: float) -> float:
        hour = int(at // 3600)
        if hour not in self._by_hour:
            drawn = self._random.gammavariate(1 / 0.36, 0.36)
            self._by_hour[hour] = min(0.95, self._share * drawn)
        return self._by_hour[hour]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One series: so many calls an hour, healthy until `bad_at`, then at `bad_share`."""

    shape: str
    calls_an_hour: float
    share: float
    bad_share: float | None
    bad_at: float
    seconds: float
    seed: str

    def calls(self) -> Iterator[tuple[float, int]]:
        """Yield when each call ended, in seconds, and 1 if it failed."""
        random = Random(self.seed)  # noqa: S311 - simulation
        rate = HEALTHY[self.shape](random, self.share)
        fails = _FAILURES.get(self.shape, _independent)(random)
        at = random.expovariate(self.calls_an_hour / 3600)
        while at < self.seconds:
            bad = self.bad_share is not None and at >= self.bad_at
            yield at, int(fails(self.bad_share if bad and self.bad_share else rate(at)))
            at += random.expovariate(self.calls_an_hour / 3600)


def _independent(random: Random) -> Callable[[float], bool]:
    return lambda share: random.random() < share


def _sticky(random: Random) -> Callable[[float], bool]:
    """After a failure the next call fails in half of all cases."""
    failed = False

    def fails(share: float) -> bool:
        nonlocal failed
        stays = max(0.5, share)
        begins = min(1.0, share * (1 - stays) / (1 - share))
        failed = random.random() < (stays if failed else begins)
        return failed

    return fails


def _bursts(random: Random) -> Callable[[float], bool]:
    """Half of the failures come in bursts of 3 to 7 calls."""
    left = 0

    def fails(share: float) -> bool:
        nonlocal left
        if left:
            left -= 1
            return random.random() < 0.8
        if random.random() < share / 8:
            left = random.randint(3, 7)
        return random.random() < share / 2

    return fails


_FAILURES: dict[str, Callable[[Random], Callable[[float], bool]]] = {
    "sticky": _sticky,
    "bursts": _bursts,
}
