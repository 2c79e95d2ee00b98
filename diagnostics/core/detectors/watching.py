"""One series under the `change` detector, call by call or bucket by bucket."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from diagnostics.core.detectors.calls import (
    LONG_AGO,
    NOTHING,
    Kind,
    Split,
    split_calls,
)
from diagnostics.core.detectors.change import (
    LARGE_JUMPS,
    SERIES_OF_A_PROJECT,
    Suspicion,
    Weights,
    alarm_level,
    feared_rates,
    gain_of,
    weigh,
)
from diagnostics.core.detectors.expectation import Block, Expectation, History
from diagnostics.core.detectors.judgement import Counts

BLOCK_CALLS = 20
RECENT_SECONDS = 1800
RECENT_CALLS = 50
CLEARED_SHARE = 0.8
WEEK_SECONDS = 7 * 86_400
LEARN_AFTER_SECONDS = 86_400
REFRESH_SECONDS = 3600
REFRESH_CALLS = 200
YOUNG_CALLS = 1000
NEW_CALLS_A_WEEK = 2_000
PENDING_SECONDS = 600

Numbers = Sequence[float]
"""A block as plain numbers: its time, then calls and failures of each kind."""


@dataclass(frozen=True, slots=True)
class Fire:
    """One alarm: when it fired, since when, and when it cleared; seconds."""

    at: float
    onset: float
    cleared: float | None = None


class Watch:
    """What is remembered of one series between its calls."""

    def __init__(
        self, series: int = SERIES_OF_A_PROJECT, baseline: float | None = None
    ) -> None:
        """Begin without a past; `series` share the project's budget of false fires.

        `baseline` is the usual share of failures, where it is known beforehand.
        """
        self._series = series
        self._history = History()
        self._pending: deque[Block] = deque()
        self._block = NOTHING
        self._since_failure = LONG_AGO
        self._recent: deque[tuple[float, int, int]] = deque()
        self._recent_calls = self._recent_failed = 0
        self._suspicions = [Suspicion() for _ in (0.0, *LARGE_JUMPS)]
        self._refreshed_at = 0.0
        self._refreshed_calls = 0
        self._weights: tuple[tuple[Weights, ...], ...] = ()
        self._first = Expectation() if baseline is None else _expecting(baseline)
        self._settle(self._first, alarm_level(NEW_CALLS_A_WEEK, series))
        self.fire: Fire | None = None
        self.relief = 0.0

    def feed(self, at: float, calls: int, failed: int) -> Fire | None:
        """Take calls that ended at a time; return the alarm when it fires or clears."""
        self._refresh(at)
        split, self._since_failure = split_calls(calls, failed, self._since_failure)
        is_calm = not failed and not any(one.peak for one in self._suspicions)
        if not is_calm:
            self._suspect(split, at)
        self._recall(at, calls, failed)
        if self.fire is not None:
            return self._clear(at)
        if not is_calm:
            for one, weights in zip(self._suspicions, self._weighed(), strict=False):
                if one.total == 0.0:
                    one.learn_climb(1.01 * weights[0].failed, self._alarm)
        self._block = self._block.plus(split)
        self._learn(at)
        return self._fire(at)

    def end(self, at: float) -> Fire | None:
        """End the alarm whatever the calls say; begin anew."""
        ended, self.fire = self.fire, None
        for one in self._suspicions:
            one.drop()
        return Fire(ended.at, ended.onset, at) if ended else None

    @property
    def expected(self) -> float:
        """The share of failures that is usual now."""
        return self._expectation.fresh

    @property
    def alarm(self) -> float:
        """The evidence at which it fires."""
        return self._alarm

    @property
    def evidence(self) -> float:
        """What speaks for a worsening now."""
        return self._strongest().evidence

    @property
    def margin(self) -> float:
        """The evidence that it lacks for an alarm of its own; below 0 there is more."""
        return self._alarm - self._strongest().evidence

    @property
    def recent(self) -> Counts:
        """The last 30 minutes, and at least the last 50 calls."""
        return Counts(self._recent_calls, self._recent_failed)

    def memory(self) -> list[Numbers]:
        """Give what is known of the last 14 days, an hour each, as plain numbers."""
        return [_written(block) for block in self._history.blocks]

    def state(self) -> dict[str, Any]:
        """Give everything else as plain JSON: small, and other after every call."""
        fire = self.fire
        return {
            "sums": [astuple(one) for one in self._suspicions],
            "since_failure": self._since_failure,
            "recent": list(self._recent),
            "pending": [_written(block) for block in self._pending],
            "block": _written(Block(0.0, self._block)),
            "refreshed": [self._refreshed_at, self._refreshed_calls],
            "settled": [list(self._expectation), self._alarm],
            "fire": [fire.at, fire.onset] if fire else None,
        }

    @classmethod
    def restore(
        cls,
        state: Mapping[str, Any],
        memory: Iterable[Numbers],
        series: int = SERIES_OF_A_PROJECT,
    ) -> "Watch":
        """Go on where a watch was left, from what it gave as state and memory."""
        watch = cls(series)
        for numbers in memory:
            watch._history.add(_read(numbers))
        watch._suspicions = [Suspicion(*one) for one in state["sums"]]
        watch._since_failure = state["since_failure"]
        watch._recent = deque((at, n, k) for at, n, k in state["recent"])
        watch._recent_calls = sum(n for _, n, _ in watch._recent)
        watch._recent_failed = sum(k for _, _, k in watch._recent)
        watch._pending = deque(map(_read, state["pending"]))
        watch._block = _read(state["block"]).split
        watch._refreshed_at, watch._refreshed_calls = state["refreshed"]
        expectation, alarm = state["settled"]
        watch._settle(Expectation(*expectation), alarm)
        watch.fire = Fire(*state["fire"]) if state["fire"] else None
        return watch

    def _suspect(self, split: Split, at: float) -> None:
        """Add to the sums; good calls alone add nothing to sums that are at zero."""
        ceiling = 2 * self._alarm
        for one, weights in zip(self._suspicions, self._weighed(), strict=False):
            one.add(gain_of(split, weights), at, ceiling)

    def _weighed(self) -> Sequence[tuple[Weights, ...]]:
        """Give the weights of what is expected, made when they are first needed."""
        if not self._weights:
            self._weights = weigh(self._expectation)
        return self._weights

    def _fire(self, at: float) -> Fire | None:
        worst = self._strongest()
        if worst.evidence < self._alarm - self.relief:
            return None
        self.fire = Fire(at, worst.since)
        self._block = NOTHING
        self._pending = deque(b for b in self._pending if b.at < worst.since)
        return self.fire

    def _clear(self, at: float) -> Fire | None:
        below = CLEARED_SHARE * feared_rates(self._expectation.fresh)[0]
        low = self._recent_failed < below * self._recent_calls
        falling = self._strongest().evidence < self._alarm / 2
        return self.end(at) if low and falling else None

    def _strongest(self) -> Suspicion:
        found, *others = self._suspicions
        most = found.evidence
        for one in others:
            if one.total > 0.0 and (evidence := one.evidence) > most:
                found, most = one, evidence
        return found

    def _recall(self, at: float, calls: int, failed: int) -> None:
        """Keep the last 30 minutes, and at least the last 50 calls."""
        recent = self._recent
        recent.append((at, calls, failed))
        self._recent_calls += calls
        self._recent_failed += failed
        while (
            recent[0][0] < at - RECENT_SECONDS
            and self._recent_calls - recent[0][1] >= RECENT_CALLS
        ):
            _, gone, gone_failed = recent.popleft()
            self._recent_calls -= gone
            self._recent_failed -= gone_failed

    def _learn(self, at: float) -> None:
        """Take a block for healthy when nothing speaks against it, or a day later."""
        if self._block.calls >= BLOCK_CALLS:
            self._put_by(at)
        quiet = self._pending and self._strongest().evidence < self._alarm / 2
        while self._pending and (
            quiet or self._pending[0].at < at - LEARN_AFTER_SECONDS
        ):
            self._history.add(self._pending.popleft())

    def _put_by(self, at: float) -> None:
        """Let calls wait to be learned, those of ten minutes together."""
        last = self._pending[-1] if self._pending else None
        if last is not None and last.at // PENDING_SECONDS == at // PENDING_SECONDS:
            self._pending[-1] = Block(at, last.split.plus(self._block))
        else:
            self._pending.append(Block(at, self._block))
        self._block = NOTHING

    def _refresh(self, at: float) -> None:
        """Look at the history anew: every hour, and more often while it is young."""
        calls = self._history.calls
        grown = calls < YOUNG_CALLS and calls >= self._refreshed_calls + REFRESH_CALLS
        if at < self._refreshed_at + REFRESH_SECONDS and not grown:
            return
        self._refreshed_at, self._refreshed_calls = at, calls
        if calls >= REFRESH_CALLS:
            alarm = alarm_level(self._calls_a_week(), self._series)
            self._settle(self._history.expect(at), alarm)

    def _calls_a_week(self) -> float:
        """Extrapolate a young series by no more than four times what it was seen to do."""
        calls = self._history.calls
        a_week = calls * WEEK_SECONDS / max(self._history.seconds, REFRESH_SECONDS)
        return min(a_week, max(NEW_CALLS_A_WEEK, 4 * calls))

    def _settle(self, expectation: Expectation, alarm: float) -> None:
        self._expectation, self._alarm = expectation, alarm
        self._weights = ()


def _expecting(baseline: float) -> Expectation:
    """Expect a known rate, and companions of failures as a new series has them."""
    rate = min(max(baseline, 0.01), 0.80)
    usual = Expectation()
    return Expectation(rate, max(rate, usual.next), max(rate, usual.soon))


def _written(block: Block) -> Numbers:
    return [block.at, *(number for kind in block.split for number in kind)]


def _read(numbers: Numbers) -> Block:
    at, *counts = numbers
    n = [int(count) for count in counts]
    kinds = Kind(n[0], n[1]), Kind(n[2], n[3]), Kind(n[4], n[5])
    return Block(at, Split(*kinds))
