"""One series under the `change` detector, call by call or bucket by bucket."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, NamedTuple

from diagnostics.analysis.detectors.baseline import FEW_CALLS, LEAST_CALLS, Expectation, History
from diagnostics.analysis.detectors.call_history import (
    HOUR_SECONDS,
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
    HIGHEST_FEARED,
    LOWEST_ALARM,
    SERIES_OF_A_PROJECT,
    SUMS,
    Dispersion,
    Fear,
    Suspicion,
    alarm_level,
    fears_of,
    gain_of,
    trouble_rate,
    weigh_rate,
)
from diagnostics.analysis.detectors.level_shift import Lasting, Recent
from diagnostics.analysis.detectors.results import WindowCounts

BLOCK_CALLS = 20
WEEK_SECONDS = 7 * 86_400
LEARN_AFTER_SECONDS = 2 * 86_400
REFRESH_SECONDS = 3600
REFRESH_CALLS = 100
YOUNG_CALLS = 1000
NEW_CALLS_A_WEEK = 6_000
EXTRAPOLATED = 16
PENDING_SECONDS = 1800
STATE_FORM = 2
"""What a state is written as; a detector with another one begins with its past."""
UNSUSPICIOUS = 0.25
"""Of the evidence that fires, of any sum: what speaks less for a worsening is learned at once."""
WRITTEN = {
    kind: attrgetter(*(one.name for one in fields(kind))) for kind in (Suspicion, Dispersion)
}
"""What a sum is written as: its fields in order."""
NEWS_SECONDS = 1800
GOING_ON = 1.35
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

    def is_news(self, at: float) -> bool:
        """Whether others that share its cause may be about to fire: for as long as it took.

        After that it says nothing of others, however long it goes on: each would need less
        evidence all the time.
        """
        return at - self.at <= max(self.at - self.onset, NEWS_SECONDS)


class OngoingTrouble(NamedTuple):
    """What fired: the rate that is feared to go on, and the evidence at which it fired."""

    rate: float
    alarm: float


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
        self._dispersion = Dispersion()
        self._going_on = Suspicion()
        self._trouble = OngoingTrouble(HIGHEST_FEARED, LOWEST_ALARM)
        self._refreshed_at = 0.0
        self._refreshed_calls = 0.0
        self._fears: tuple[Fear, ...] = ()
        self._worst: tuple[float, Suspicion, float] | None = None
        self._alarms: tuple[float, ...] = ()
        self._first = Expectation() if baseline is None else _expecting(baseline)
        self._least_calls = FEW_CALLS if baseline is None else YOUNG_CALLS
        self._settle(self._first, NEW_CALLS_A_WEEK)
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
            self._suspect(at, split)
        self._recent.add(at, calls, failed)
        if self.fire is not None:
            self._lasting.add(at, split)
            self._doubt(at, split)
            return self._clear(at, self.fire)
        if not is_calm:
            for one, fear, alarm in self._sums():
                if one.total == 0.0:
                    one.learn_climb(1.01 * fear.weights[0].failed, alarm)
        self._learn(at, split)
        return self._fire(at)

    def end(self, at: float) -> Fire | None:
        """End the alarm whatever the calls say; begin anew."""
        ended, self.fire, self._lasting = self.fire, None, Lasting()
        for one in self._suspicions:
            one.drop()
        self._worst = None
        return Fire(ended.at, ended.onset, at, self.is_usual) if ended else None

    @property
    def expected(self) -> float:
        """The share of failures that is usual now."""
        return self._expectation.share

    @property
    def alarm(self) -> float:
        """The evidence at which it fires."""
        return self._strongest()[2]

    @property
    def evidence(self) -> float:
        """What speaks for a worsening now."""
        return self._strongest()[1].evidence

    @property
    def margin(self) -> float:
        """The evidence that it lacks for an alarm of its own; below 0 there is more."""
        return self._strongest()[0]

    @property
    def recent(self) -> WindowCounts:
        """The last 30 minutes, and at least the last 50 calls."""
        return self._recent.counts

    def memory(self) -> list[Numbers]:
        """Return what is known of the last 14 days, an hour each, as plain numbers."""
        return [write_block(block) for block in self._history.blocks]

    def state(self) -> dict[str, Any]:
        """Return everything else as plain JSON: small, and other after every call.

        `hour` is the last of the memory, which grows until it ends.
        """
        fire = self.fire
        return {
            "form": STATE_FORM,
            "sums": list(map(WRITTEN[Suspicion], self._suspicions)),
            "since_failure": self._since_failure,
            "recent": self._recent.stretches,
            "pending": [write_block(block) for block in self._pending],
            "hour": [write_block(block) for block in list(self._history.blocks)[-1:]],
            "block": write_block(Block(0.0, self._block.split())),
            "refreshed": [self._refreshed_at, self._refreshed_calls],
            "expectation": list(self._expectation),
            "calls_a_week": self._a_week,
            "dispersion": WRITTEN[Dispersion](self._dispersion),
            "fire": [fire.at, fire.onset] if fire else None,
            "trouble": list(self._trouble),
            "going_on": WRITTEN[Suspicion](self._going_on),
            "lasting": [write_block(block) for block in self._lasting.blocks],
            "is_usual": self.is_usual,
        }

    @classmethod
    def restore(
        cls, state: Mapping[str, Any], memory: Iterable[Numbers], series: int = SERIES_OF_A_PROJECT
    ) -> "ChangeDetector":
        """Go on where a watch was left, from what it gave as state and memory."""
        watch = cls(series)
        hour = [read_block(numbers) for numbers in state["hour"]]
        for block in map(read_block, memory):
            if not hour or block.at // HOUR_SECONDS < hour[0].at // HOUR_SECONDS:
                watch._history.add(block)
        for block in hour:
            watch._history.add(block)
        for place, one in enumerate(state["sums"][:SUMS]):
            watch._suspicions[place] = Suspicion(*one)
        watch._since_failure = state["since_failure"]
        watch._recent = Recent(state["recent"])
        watch._pending = deque(map(read_block, state["pending"]))
        watch._block = BurstCounts(read_block(state["block"]).split)
        watch._refreshed_at, watch._refreshed_calls = state["refreshed"]
        watch._settle(Expectation(*state["expectation"]), state["calls_a_week"])
        watch.fire = Fire(*state["fire"]) if state["fire"] else None
        watch._dispersion = Dispersion(*state["dispersion"])
        watch._trouble = OngoingTrouble(*state["trouble"])
        watch._going_on = Suspicion(*state["going_on"])
        watch._lasting = Lasting(map(read_block, state["lasting"]))
        watch.is_usual = state["is_usual"]
        return watch

    def _sums(self) -> Iterator[tuple[Suspicion, Fear, float]]:
        """Return every sum with what it fears and the evidence at which it fires."""
        if not self._fears:
            self._fears = fears_of(self._expectation)
            self._alarms = tuple(
                alarm_level(self._a_week, self._series, fear.chance) for fear in self._fears
            )
            for one in self._suspicions[len(self._fears) :]:
                one.drop()
        return zip(self._suspicions, self._fears, self._alarms, strict=False)

    def _suspect(self, at: float, split: Split) -> None:
        """Add what calls say to every sum."""
        expectation, dispersion = self._expectation, self._dispersion.factor
        for one, fear, alarm in self._sums():
            gain = fear.gain(split, expectation, one, dispersion)
            one.add(gain, split.fresh, at, 2 * alarm)
        self._worst = None

    def _strongest(self) -> tuple[float, Suspicion, float]:
        """Return the sum that lacks least for an alarm: what it lacks, and its alarm."""
        if self._worst is None:
            lacks = (
                (alarm - (one.evidence if one.total else 0.0), place, one, alarm)
                for place, (one, _, alarm) in enumerate(self._sums())
            )
            least, _, one, alarm = min(lacks)
            self._worst = least, one, alarm
        return self._worst

    def _doubt(self, at: float, split: Split) -> None:
        """Add to the sum that says that the trouble goes on; it falls soon after the end."""
        trouble, seen, usual = self._trouble, self._going_on, self._expectation
        gain = gain_of(split, weigh_rate(trouble.rate, usual))
        seen.add(gain, split.fresh, at, GOING_ON * trouble.alarm)
        if seen.total >= trouble.alarm:
            self._trouble = trouble._replace(rate=trouble_rate(seen, usual.fresh))

    def _fire(self, at: float) -> Fire | None:
        lacks, worst, alarm = self._strongest()
        if lacks > self.relief or not worst.total:
            return None
        self.fire, self.is_usual = Fire(at, worst.since), False
        self._trouble = OngoingTrouble(trouble_rate(worst, self._expectation.fresh), alarm)
        self._going_on = Suspicion(alarm, calls=worst.calls, failed=worst.failed)
        self._dispersion.drop()
        self._block = BurstCounts()
        self._pending = deque(b for b in self._pending if b.at < worst.since)
        return self.fire

    def _clear(self, at: float, fire: Fire) -> Fire | None:
        if self._going_on.total < self._trouble.alarm / 2:
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

    def _learn(self, at: float, split: Split) -> None:
        """Take calls for healthy when nothing speaks against it, or blocks of them days later."""
        since = self._suspected_since()
        self._dispersion.add(split.fresh, self._expectation.fresh)
        if since is None:
            self._dispersion.learn()
        self._block.add(split)
        if self._block.calls >= BLOCK_CALLS:
            self._put_by(at)
        pending = self._pending
        until = at + 1 if since is None else max(since, at - LEARN_AFTER_SECONDS)
        while pending and pending[0].at < until:
            self._history.add(pending.popleft())

    def _suspected_since(self) -> float | None:
        """Say since when anything speaks for a worsening; None when hardly anything does."""
        begun = [
            one.since
            for one, _, alarm in self._sums()
            if one.total and one.evidence >= UNSUSPICIOUS * alarm
        ]
        return min(begun, default=None)

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
            is_known = calls >= self._least_calls
            expectation = self._history.expect(at) if is_known else self._first
            self._settle(expectation, self._calls_a_week())

    def _calls_a_week(self) -> float:
        """Extrapolate a young series, one of few hours not by all that a week has."""
        calls = self._history.calls
        a_week = calls * WEEK_SECONDS / max(self._history.seconds, REFRESH_SECONDS)
        return min(a_week, max(NEW_CALLS_A_WEEK, EXTRAPOLATED * calls))

    def _settle(self, expectation: Expectation, calls_a_week: float) -> None:
        self._expectation, self._a_week = expectation, calls_a_week
        self._fears, self._worst = (), None


def _expecting(baseline: float) -> Expectation:
    """Expect a known rate, and companions of failures as a new series has them."""
    rate = min(max(baseline, 0.01), 0.80)
    usual = Expectation()
    return Expectation(rate, max(rate, usual.next), max(rate, usual.soon))
