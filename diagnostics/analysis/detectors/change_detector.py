"""One series under the `change` detector, call by call or bucket by bucket."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from diagnostics.analysis.detectors.baseline import FEW_CALLS, LEAST_CALLS, Expectation, History
from diagnostics.analysis.detectors.call_history import (
    LONG_AGO,
    Block,
    BurstCounts,
    Numbers,
    Split,
    append_to,
    read_block,
    split_calls,
    write_block,
)
from diagnostics.analysis.detectors.change import (
    SERIES_OF_A_PROJECT,
    SUMS,
    Suspicion,
    Weights,
    alarm_level,
    clearly_worse,
    gain_of,
    strongest,
    weigh,
    weigh_rate,
)
from diagnostics.analysis.detectors.level_shift import Lasting, Recent
from diagnostics.analysis.detectors.results import WindowCounts

BLOCK_CALLS = 20
CLEARED_SHARE = 0.8
WEEK_SECONDS = 7 * 86_400
LEARN_AFTER_SECONDS = 86_400
REFRESH_SECONDS = 3600
REFRESH_CALLS = 100
YOUNG_CALLS = 1000
NEW_CALLS_A_WEEK = 6_000
EXTRAPOLATED = 16
PENDING_SECONDS = 600
GOING_ON = 1.25
"""How far beyond the alarm trouble that goes on counts: its end is to be seen soon."""


@dataclass(frozen=True, slots=True)
class Fire:
    """One alarm: when it fired, since when, and when it cleared; seconds.

    `is_usual`: it did not get better, but its level has become the usual one.
    """

    at: float
    onset: float
    cleared: float | None = None
    is_usual: bool = False


class ChangeDetector:
    """What is remembered of one series between its calls."""

    def __init__(self, series: int = SERIES_OF_A_PROJECT, baseline: float | None = None) -> None:
        """Begin without a past; `series` share the project's budget of false fires.

        `baseline` is the usual share of failures, where it is known beforehand.
        """
        self._series = series
        self._history = History()
        self._pending: deque[Block] = deque()
        self._block = BurstCounts()
        self._since_failure = LONG_AGO
        self._recent, self._lasting = Recent(), Lasting()
        self._suspicions = [Suspicion() for _ in range(SUMS)]
        self._going_on = Suspicion()
        self._refreshed_at = 0.0
        self._refreshed_calls = 0
        self._weights: tuple[tuple[Weights, ...], ...] = ()
        self._first = Expectation() if baseline is None else _expecting(baseline)
        self._least_calls = FEW_CALLS if baseline is None else YOUNG_CALLS
        self._settle(self._first, alarm_level(NEW_CALLS_A_WEEK, series))
        self.fire: Fire | None = None
        self.is_usual = False
        self.relief = 0.0

    def feed(self, at: float, calls: int, failed: int) -> Fire | None:
        """Take calls that ended at a time; return the alarm when it fires or clears."""
        self._refresh(at)
        split, self._since_failure = split_calls(calls, failed, self._since_failure)
        is_calm = not failed and not any(one.peak for one in self._suspicions)
        if not is_calm:
            # Good calls alone add nothing to sums that are at zero.
            for one, weights in zip(self._suspicions, self._weighed(), strict=False):
                one.add(gain_of(split, weights), at, 2 * self._alarm)
        self._recent.add(at, calls, failed)
        if self.fire is not None:
            self._lasting.add(at, split)
            self._doubt(at, split)
            return self._clear(at, self.fire)
        if not is_calm:
            for one, weights in zip(self._suspicions, self._weighed(), strict=False):
                if one.total == 0.0:
                    one.learn_climb(1.01 * weights[0].failed, self._alarm)
        self._block.add(split)
        if self._pending or self._block.calls >= BLOCK_CALLS:
            self._learn(at)
        return self._fire(at)

    def end(self, at: float) -> Fire | None:
        """End the alarm whatever the calls say; begin anew."""
        ended, self.fire, self._lasting = self.fire, None, Lasting()
        for one in self._suspicions:
            one.drop()
        return Fire(ended.at, ended.onset, at, self.is_usual) if ended else None

    @property
    def expected(self) -> float:
        """The share of failures that is usual now."""
        return self._expectation.share

    @property
    def alarm(self) -> float:
        """The evidence at which it fires."""
        return self._alarm

    @property
    def evidence(self) -> float:
        """What speaks for a worsening now."""
        worst = strongest(self._suspicions)
        return 0.0 if worst is None else worst.evidence

    @property
    def margin(self) -> float:
        """The evidence that it lacks for an alarm of its own; below 0 there is more."""
        return self._alarm - self.evidence

    @property
    def recent(self) -> WindowCounts:
        """The last 30 minutes, and at least the last 50 calls."""
        return self._recent.counts

    def memory(self) -> list[Numbers]:
        """Return what is known of the last 14 days, an hour each, as plain numbers."""
        return [write_block(block) for block in self._history.blocks]

    def state(self) -> dict[str, Any]:
        """Return everything else as plain JSON: small, and other after every call."""
        fire = self.fire
        return {
            "sums": [astuple(one) for one in self._suspicions],
            "since_failure": self._since_failure,
            "recent": self._recent.stretches,
            "pending": [write_block(block) for block in self._pending],
            "block": write_block(Block(0.0, self._block.split())),
            "refreshed": [self._refreshed_at, self._refreshed_calls],
            "settled": [list(self._expectation), self._alarm],
            "fire": [fire.at, fire.onset] if fire else None,
            "going_on": self._going_on.total,
            "lasting": [write_block(block) for block in self._lasting.blocks],
            "is_usual": self.is_usual,
        }

    @classmethod
    def restore(
        cls, state: Mapping[str, Any], memory: Iterable[Numbers], series: int = SERIES_OF_A_PROJECT
    ) -> "ChangeDetector":
        """Go on where a watch was left, from what it gave as state and memory."""
        watch = cls(series)
        for numbers in memory:
            watch._history.add(read_block(numbers))
        for place, one in enumerate(state["sums"][:SUMS]):
            watch._suspicions[place] = Suspicion(*one)
        watch._since_failure = state["since_failure"]
        watch._recent = Recent(state["recent"])
        watch._pending = deque(map(read_block, state["pending"]))
        watch._block = BurstCounts(read_block(state["block"]).split)
        watch._refreshed_at, watch._refreshed_calls = state["refreshed"]
        expectation, alarm = state["settled"]
        watch._settle(Expectation(*expectation), alarm)
        watch.fire = Fire(*state["fire"]) if state["fire"] else None
        # A state that was kept before these were known has none of them.
        watch._going_on.total = state.get("going_on", alarm)
        watch._lasting = Lasting(map(read_block, state.get("lasting", ())))
        watch.is_usual = state.get("is_usual", False)
        return watch

    def _doubt(self, at: float, split: Split) -> None:
        """Add to the sum that says that the trouble goes on; it falls soon after the end."""
        feared = clearly_worse(self._expectation.fresh)
        gain = gain_of(split, weigh_rate(feared, self._expectation))
        self._going_on.add(gain, at, GOING_ON * self._alarm)

    def _weighed(self) -> Sequence[tuple[Weights, ...]]:
        """Return the weights of what is expected, made when they are first needed."""
        if not self._weights:
            self._weights = weigh(self._expectation)
            for one in self._suspicions[len(self._weights) :]:
                one.drop()
        return self._weights

    def _fire(self, at: float) -> Fire | None:
        worst = self._worst(self._alarm - self.relief)
        if worst is None:
            return None
        self.fire, self.is_usual = Fire(at, worst.since), False
        self._going_on.total = self._alarm
        self._block = BurstCounts()
        self._pending = deque(b for b in self._pending if b.at < worst.since)
        return self.fire

    def _worst(self, least: float) -> Suspicion | None:
        """Return the suspicion with most evidence where that is at least so much."""
        worst = strongest(self._suspicions)
        return worst if worst is not None and worst.evidence >= least else None

    def _clear(self, at: float, fire: Fire) -> Fire | None:
        below = CLEARED_SHARE * clearly_worse(self._expectation.share)
        calls, failed = self._recent.counts
        if failed < below * calls and self._going_on.total < self._alarm / 2:
            return self.end(at)
        was_known = self._history.calls >= LEAST_CALLS
        if self._lasting.is_usual(fire.at, at, was_known=was_known):
            return self._accept(at)
        return None

    def _accept(self, at: float) -> Fire | None:
        """Take the level of a trouble that lasts for the usual one, and forget all before."""
        self._history, self._pending = History(), deque()
        for block in self._lasting.blocks:
            self._history.add(block)
        self._refreshed_at, self.is_usual = 0.0, True
        self._refresh(at)
        return self.end(at)

    def _learn(self, at: float) -> None:
        """Take a block for healthy when nothing speaks against it, or a day later."""
        if self._block.calls >= BLOCK_CALLS:
            self._put_by(at)
        pending = self._pending
        is_quiet = self._worst(self._alarm / 2) is None
        while pending and (is_quiet or pending[0].at < at - LEARN_AFTER_SECONDS):
            self._history.add(pending.popleft())

    def _put_by(self, at: float) -> None:
        """Let calls wait to be learned, those of ten minutes together."""
        append_to(self._pending, Block(at, self._block.split()), PENDING_SECONDS)
        self._block = BurstCounts()

    def _refresh(self, at: float) -> None:
        """Look at the history anew: every hour, and more often while it is young."""
        calls = self._history.calls
        grown = calls < YOUNG_CALLS and calls >= self._refreshed_calls + REFRESH_CALLS
        if at < self._refreshed_at + REFRESH_SECONDS and not grown:
            return
        self._refreshed_at, self._refreshed_calls = at, calls
        if calls >= FEW_CALLS:
            alarm = alarm_level(self._calls_a_week(), self._series)
            is_known = calls >= self._least_calls
            self._settle(self._history.expect(at) if is_known else self._first, alarm)

    def _calls_a_week(self) -> float:
        """Extrapolate a young series, one of few hours not by all that a week has."""
        calls = self._history.calls
        a_week = calls * WEEK_SECONDS / max(self._history.seconds, REFRESH_SECONDS)
        return min(a_week, max(NEW_CALLS_A_WEEK, EXTRAPOLATED * calls))

    def _settle(self, expectation: Expectation, alarm: float) -> None:
        self._expectation, self._alarm = expectation, alarm
        self._weights = ()


def _expecting(baseline: float) -> Expectation:
    """Expect a known rate, and companions of failures as a new series has them."""
    rate = min(max(baseline, 0.01), 0.80)
    usual = Expectation()
    return Expectation(rate, max(rate, usual.next), max(rate, usual.soon))
