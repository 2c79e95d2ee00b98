"""The detector `change`: a series fails more than usual, since when, and how sure that is.

1. What is `usual` is a level with its rhythm and the noise of its hours, known as well as the
   failures of the series and of its project tell. An hour is learned when nothing is suspected.
2. What is feared (`evidence`) gathers evidence against that, look by look; an alarm is the
   evidence that would be false once a week in the whole project.
3. Since when is the posterior of the change over the latest stretches (`onset`): as it fires, and
   again each time that twice as many failures are known since then.
4. It clears by the same likelihoods turned round: as usual over as bad as it was.
"""

from collections.abc import Callable, Iterable, Mapping
from math import inf, log
from typing import Any, NamedTuple, Self

from diagnostics.analysis.detectors.evidence import Badness, Suspicion, latest_burst, recent
from diagnostics.analysis.detectors.onset import CountedStretch, Onset, add_stretch, find_onset
from diagnostics.analysis.detectors.rhythm import DAY, HOUR
from diagnostics.analysis.detectors.thresholds import WindowCounts
from diagnostics.analysis.detectors.usual import (
    HourCounts,
    Learned,
    ProjectPast,
    Usual,
    background_of,
    usual_of,
)
from diagnostics.analysis.statistics import LEAST_TRIALS

MINUTE = 60.0
MINUTES, WEEK_HOURS = 60, 168
STATE_FORM = 8
"""What a state is written as; a detector with another one begins with its past."""
KEPT = "usual", "hour", "suspicion", "stretches", "began", "minutes"
KEPT_OF_ALARMS = "before", "bad", "settled", "burst"
RESTLESS, MOST_PENDING = 2.5, 24
"""The evidence above which hours are not learned, for so many hours at most."""
KNOWN_SECONDS, NEW_SECONDS, ACCEPTED_CALLS, ACCEPTED_SHARE = 3 * DAY, DAY, 50, 0.8
"""After so long at a level it is the usual one; sooner where nothing was known before."""
SHOWN_CALLS, SHOWN_SECONDS = 50, 1800
MOST_REFINED = 24
"""Failures since the onset up to which it is found again: of more, an alarm knows it well."""
WATCHED_SERIES = 7
"""Series of a project up to which one is watched by as much less evidence."""


class Fire(NamedTuple):
    """One alarm: when it fired, since when, and when it cleared; seconds.

    `is_usual`: it did not get better, but its level has become the usual one.
    """

    at: float
    onset: Onset
    cleared: float | None = None
    is_usual: bool = False


class ChangeDetector:
    """What is remembered of one series between its calls."""

    def __init__(self, series: int = 1, past: Callable[[], ProjectPast] = ProjectPast) -> None:
        """Begin without a past; `series` share one false alarm a week.

        `past` tells what the series of the project have in common; it is asked once an hour.
        """
        self._series, self._past = series, past
        self.learned = Learned()
        self._usual: Usual | None = None
        self._hour, self._suspicion = HourCounts(), Suspicion()
        self._stretches: list[CountedStretch] = []
        self._began = self._minutes = 0.0
        self._before = 0.0, 0.0
        self._bad = self._settled = Badness()
        self._burst = 0.0
        self.fires: list[Fire] = []
        self.has_success = False

    def feed(self, at: float, calls: int, failed: int, seconds: float = MINUTE) -> Fire | None:
        """Take calls of some seconds from `at` on; return the alarm when it fires or clears."""
        if calls <= 0:
            return None
        failed = max(0, min(failed, calls))
        self.has_success = self.has_success or failed < calls
        usual = self._usual
        if usual is None or at // HOUR > usual.hour:
            usual = self._open(at)
        stretch = CountedStretch(at, seconds, calls, failed)
        self._minutes += self._new_minutes(stretch)
        add_stretch(self._stretches, stretch)
        if self.fire is not None:
            return self._doubt(stretch, self.fire, usual)
        before, self._hour = self._hour, usual.plus_calls(self._hour, at, calls, failed)
        self._suspicion = self._suspicion.plus(
            calls * usual.share,
            failed * usual.share,
            self._hour.likely - before.likely,
            usual.before,
        )
        return self._fire(at, usual) if self.evidence >= usual.alarm else None

    @property
    def fire(self) -> Fire | None:
        return self.fires[-1] if self.fires and self.fires[-1].cleared is None else None

    @property
    def evidence(self) -> float:
        """What speaks for a worsening; of an alarm, as it fired."""
        return self._suspicion.evidence

    @property
    def alarm(self) -> float:
        """The evidence at which it fires."""
        return self._usual.alarm if self._usual else log(self._series * WEEK_HOURS * MINUTES)

    @property
    def is_watched(self) -> bool:
        """Whether the evidence would be false once a week in this series, or a day in a few."""
        return self.evidence >= self.alarm - log(max(self._series, WATCHED_SERIES))

    @property
    def baseline(self) -> float | None:
        """The share that fails usually, before the alarm of a firing one; None: of few calls."""
        learned = self.learned
        failed, calls = self._before if self.fire else (learned.failed, learned.calls)
        return failed / calls if calls >= LEAST_TRIALS else None

    @property
    def counts(self) -> WindowCounts:
        """What was counted since the onset; where nothing fires, in 30 minutes or 50 calls."""
        if self.fire is not None:
            return WindowCounts(round(self._bad.calls), round(self._bad.failed))
        failed = calls = 0
        for stretch in reversed(self._stretches):
            if calls >= SHOWN_CALLS and stretch.end <= self._stretches[-1].end - SHOWN_SECONDS:
                break
            calls, failed = calls + stretch.calls, failed + stretch.failed
        return WindowCounts(calls, failed)

    def end(self, at: float, *, is_usual: bool = False) -> Fire | None:
        """End the alarm whatever the calls say; begin anew."""
        ended = self.fire
        self._suspicion, self._hour, self._usual = Suspicion(), HourCounts(), None
        self._stretches, self.learned.pending = [], []
        if ended:
            self.fires[-1] = ended = ended._replace(cleared=at, is_usual=is_usual)
        return ended

    def keep_firing(self, fired_at: float, onset: float) -> None:
        """Take over an alarm that another detector raised."""
        if self.fire is None:
            self._raise(fired_at, Onset(onset, onset, onset))

    def _open(self, at: float) -> Usual:
        """End the hour, learn what nothing speaks against, and say what to expect of the next."""
        learned, past, hour = self.learned, self._past(), self._hour
        self._began = self._began or at
        of_late, learned.drift = learned.drift.follow(past.recent, learned.recent, int(at // HOUR))
        if self.fire is None:
            if self._usual is not None and hour.calls:
                expected = hour.calls * self._usual.before / self._usual.of_late
                learned.recent = learned.recent.plus(self._usual.hour, hour.failed, expected)
                learned.pending.append(self._usual.end(hour, learned))
            is_calm = self.evidence < RESTLESS
            variation = self._usual.variation if self._usual else 0.0
            while learned.pending and (is_calm or len(learned.pending) > MOST_PENDING):
                learned.learn(learned.pending.pop(0), variation)
        self._hour = HourCounts()
        self._usual = usual_of(learned, past, at, self._evaluations_a_week(at), of_late)
        return self._usual

    def _evaluations_a_week(self, at: float) -> float:
        """Return how many minutes with calls all series of the project have in a week."""
        hours = max(at - self._began, 0.0) / HOUR
        by_hour = min((self._minutes + MINUTES) / (hours + 1), MINUTES)
        return self._series * WEEK_HOURS * by_hour

    def _new_minutes(self, stretch: CountedStretch) -> float:
        """Return how many more minutes have calls, where those of a stretch are spread evenly."""
        if self._stretches and stretch.at // MINUTE <= self._stretches[-1].at // MINUTE:
            return 0.0
        minutes = max(stretch.seconds / MINUTE, 1.0)
        return minutes * (1 - (1 - 1 / minutes) ** stretch.calls)

    def _fire(self, at: float, usual: Usual) -> Fire:
        """Fire, learn what lies before the onset, and drop what was suspected."""
        learned, onset = self.learned, self._find_onset(usual)
        pending, learned.pending = learned.pending, []
        for hour in pending:
            if (hour.hour + 1) * HOUR <= onset.at:
                learned.learn(hour, usual.variation)
        return self._raise(at, onset)

    def _find_onset(self, usual: Usual) -> Onset:
        background = background_of(self._stretches, self.learned, self._past(), usual)
        return find_onset(self._stretches, background)

    def _refine(self, fire: Fire, failed: int, usual: Usual) -> None:
        """Find the onset of an alarm again, if these failures double those known since it."""
        known = round(self._bad.failed)
        is_doubled = known.bit_length() > (known - failed).bit_length()
        if not is_doubled or known > MOST_REFINED or self._bad.calm > 0:
            return
        onset = self._find_onset(usual)
        if onset.at < fire.at and onset.high - onset.low < fire.onset.high - fire.onset.low:
            self.fires[-1] = fire._replace(onset=onset)
            self._count_since(onset)

    def _raise(self, at: float, onset: Onset) -> Fire:
        self.fires.append(fire := Fire(at, onset))
        self._count_since(onset)
        learned = self.learned.failed, self.learned.calls
        before = [stretch for stretch in self._stretches if stretch.end <= onset.at]
        self._before = learned if learned[1] >= LEAST_TRIALS else _sum(before)
        return fire

    def _count_since(self, onset: Onset) -> None:
        burst = latest_burst(self._stretches, onset.at)
        self._burst, self._settled = burst.begin, self._bad_since(onset.at, burst.begin)
        self._bad = self._bad_since(onset.at)

    def _bad_since(self, onset: float, until: float = inf) -> Badness:
        bad = _sum(
            stretch for stretch in self._stretches if stretch.end > onset and stretch.at < until
        )
        return Badness(*bad, *recent(*bad))

    def _doubt(self, new: CountedStretch, fire: Fire, usual: Usual) -> Fire | None:
        """Weigh as usual against as bad as it was; clear when that is as sure as an alarm."""
        at, burst = new.at, latest_burst(self._stretches, fire.onset.at)
        if burst.begin > self._burst:
            self._burst, self._settled = burst.begin, self._bad
        elif at < burst.begin:
            self._settled = self._settled.plus(new.calls, new.failed, usual)
        self._bad = bad = self._settled.plus(burst.calls, burst.failed, usual)
        sure = usual.alarm - log(self._series)
        if bad.calm > sure and (burst.is_whole or self._settled.calm > sure):
            return self.end(at)
        long = KNOWN_SECONDS if self._before[1] >= ACCEPTED_CALLS else NEW_SECONDS
        is_level = ACCEPTED_CALLS <= bad.calls >= bad.failed / ACCEPTED_SHARE
        if is_level and at - fire.at >= long:
            self.learned.move(bad.failed / 2, bad.calls / 2)
            return self.end(at, is_usual=True)
        self._refine(fire, new.failed, usual)
        return None

    def state(self) -> dict[str, Any]:
        """Return what calls change, as plain JSON; what was learned is apart."""
        return {
            "form": STATE_FORM,
            "opened": self._usual and self._usual.hour,
            "fire": self.fire and [self.fire.at, list(self.fire.onset)],
            "has_success": self.has_success,
            **{name: getattr(self, f"_{name}") for name in (*KEPT, *KEPT_OF_ALARMS)},
        }

    @classmethod
    def restore(
        cls,
        state: Mapping[str, Any],
        learned: Learned,
        fires: list[Fire],
        series: int = 1,
        past: Callable[[], ProjectPast] = ProjectPast,
    ) -> Self:
        """Go on where a detector was left, from its state, what it had learned and its alarms."""
        detector = cls(series, past)
        detector.learned, detector.fires = learned, fires
        detector._usual = state["usual"] and Usual(*state["usual"])
        detector._hour = HourCounts(*state["hour"])
        detector._suspicion = Suspicion(*state["suspicion"])
        detector._stretches = [CountedStretch(*stretch) for stretch in state["stretches"]]
        detector._began, detector._minutes = state["began"], state["minutes"]
        detector._before, detector._burst = tuple(state["before"]), state["burst"]
        detector._bad = Badness(*state["bad"])
        detector._settled = Badness(*state["settled"])
        detector.has_success = state["has_success"]
        return detector


def _sum(stretches: Iterable[CountedStretch]) -> tuple[float, float]:
    failed = calls = 0.0
    for stretch in stretches:
        failed, calls = failed + stretch.failed, calls + stretch.calls
    return failed, calls
