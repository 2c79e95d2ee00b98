"""Counts of calls from rollups, under names for pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import add

from diagnostics.analysis.statistics import AttemptTally
from diagnostics.store.rollups import (
    CALL_ERRORS,
    FAILURE_KINDS,
    FOUND_BY_CHECK,
    LATENCY,
    LATENCY_BOUNDS_MS,
    UNCHECKED,
)

UNSAID = "other_invalid"
"""The kind of failures in runs posted as outcomes, which have none."""
MOST_ATTEMPTS = 5
TRIED = tuple(f"tried_{number}" for number in range(2, MOST_ATTEMPTS + 1))
GOOD = tuple(f"good_{number}" for number in range(2, MOST_ATTEMPTS + 1))
CALLS: tuple[str, ...] = (
    *("attempts", "invalid", "runs", "degraded", "ok_first", "repaired", "ok_altered", "cancelled"),
    *(*UNCHECKED, *FAILURE_KINDS, *TRIED),
)
"""The measures needed to compare calls."""
FAILED = ("invalid", *CALL_ERRORS)
FAILING: tuple[str, ...] = ("attempts", "runs", "degraded", *FAILED)
"""The measures needed to tell how many calls failed, of whatever kind."""
LADDERS: tuple[str, ...] = ("succeeded", *GOOD)
COSTS: tuple[str, ...] = (
    *("input_tokens", "output_tokens", "retry_input_tokens", "retry_output_tokens", "retry_ms"),
    *("invalid_input_tokens", "invalid_output_tokens"),
    *("latency_count", "latency_ms", "invalid_latency_count", "invalid_latency_ms"),
)
ANSWERS: tuple[str, ...] = ("succeeded", "output_tokens", "invalid_output_tokens")
BASELINE = tuple(dict.fromkeys((*CALLS, *ANSWERS)))
EVERYTHING = tuple(dict.fromkeys((*BASELINE, *LADDERS, *COSTS, *LATENCY)))
LEAST_POSTED = 0.9
"""With fewer calls per run, the agent posts outcomes, and only some calls one by one."""


@dataclass(frozen=True, slots=True)
class Side:
    """A count of a total, as one side of a comparison."""

    good: int
    trials: int

    @property
    def bounded(self) -> "Side":
        return Side(max(min(self.good, self.trials), 0), self.trials)

    @property
    def share(self) -> float | None:
        """Between 0 and 1, None without a trial."""
        return self.bounded.good / self.trials if self.trials else None


@dataclass(frozen=True, slots=True)
class CallCounts:
    """Calls and runs of a time range, by kind of failure if it is known."""

    calls: int = 0
    failed: int = 0
    runs: int = 0
    degraded: int = 0
    ok_first: int = 0
    repaired: int = 0
    by_kind: Mapping[str, int] = field(default_factory=dict)
    noun: str = "call"
    """What `calls` counts: runs, if agents post outcomes and not every call."""
    altered: int = 0
    """First passes whose reading changed a value."""
    unchecked: int = 0
    """Answers that nothing checked; their runs are in no count but `runs`."""
    first: int = 0
    """First attempts that were checked (`first_attempts`)."""

    def side_of(self, kind: str) -> Side:
        """Return the failures of a kind, of the calls that could have failed in this way."""
        calls = self.calls - self.unchecked if kind in FOUND_BY_CHECK else self.calls
        return Side(self.of_kind(kind), calls)

    def of_kind(self, kind: str) -> int:
        return self.by_kind.get(kind, 0)

    @property
    def rates(self) -> Mapping[str, Side]:
        return {
            "degraded": Side(self.degraded, self.runs),
            "failed": Side(self.failed, self.calls),
            "first_pass": Side(self.ok_first, self.first),
            "unaltered": Side(self.ok_first - self.altered, self.first),
            "repaired": Side(self.repaired, self.repaired + self.degraded),
            "unchecked": Side(self.unchecked, self.calls),
        }


SUMMED = [it.name for it in fields(CallCounts) if it.name not in ("by_kind", "noun")]


def count_calls(sums: Mapping[str, int]) -> CallCounts:
    """Read sums of `CALLS`; runs replace calls if not every call was posted."""
    failing = count_failing(*(sums[name] for name in FAILING))
    by_kind = {kind: sums[kind] for kind in FAILURE_KINDS if sums[kind]}
    if not sums["attempts"]:
        by_kind = {UNSAID: failing.degraded} if failing.degraded else {}
    ended = sums["ok_first"], sums["repaired"], failing.degraded
    unchecked, retries = (sum(sums[name] for name in names) for names in (UNCHECKED, TRIED))
    return replace(
        failing,
        ok_first=ended[0],
        repaired=ended[1],
        by_kind=by_kind,
        altered=sums["ok_altered"],
        unchecked=unchecked,
        first=first_attempts(sums["attempts"] - unchecked, failing.failed, *ended, retries),
    )


def count_failing(attempts: int, runs: int, degraded: int, *failed: int) -> CallCounts:
    """Read sums of `FAILING`: calls and how many failed, without their kinds."""
    noun = "run" if counts_runs(attempts, runs) else "call"
    calls, failures = (attempts, sum(failed)) if attempts else (runs, degraded)
    return CallCounts(runs if noun == "run" else calls, failures, runs, degraded, noun=noun)


def first_attempts(
    checked: int, failed: int, ok_first: int, repaired: int, degraded: int, retries: int
) -> int:
    """Return how many first attempts were checked, of counts of one model.

    A run that a fallback rescues failed at the model it asked first, and ends at another one,
    whose first attempts it is none of. Where only the ends of runs are reported, each had one.
    """
    if counts_runs(checked, ok_first + repaired + degraded):
        return ok_first + repaired + degraded
    unreported = max(degraded - failed, 0)
    return max(checked - retries + unreported, ok_first)


def counts_runs(calls: int, runs: int) -> bool:
    """Whether shares are of runs: agents posted outcomes, and no event for most calls."""
    return calls < LEAST_POSTED * runs


def add_counts(counts: Sequence[CallCounts]) -> CallCounts:
    kinds = dict.fromkeys(kind for part in counts for kind in part.by_kind)
    return CallCounts(
        **{name: sum(getattr(part, name) for part in counts) for name in SUMMED},
        by_kind={kind: sum(part.of_kind(kind) for part in counts) for kind in kinds},
        noun="run" if any(part.noun == "run" for part in counts) else "call",
    )


def tallies_of(sums: Mapping[str, int]) -> list[AttemptTally]:
    """Return sums of `CALLS` and `LADDERS` as attempts 1, 2, ...; 5 includes all later ones.

    Trailing attempts without calls are dropped. Unchecked answers count in none.
    """
    unchecked = sum(sums[name] for name in UNCHECKED)
    retries, later = [sums[name] for name in TRIED], [sums[name] for name in GOOD]
    attempts = [sums["attempts"] - unchecked - sum(retries), *retries]
    successes = [sums["succeeded"] - unchecked - sum(later), *later]
    tallies = [
        AttemptTally(made, min(max(succeeded, 0), made))
        for made, succeeded in zip(attempts, successes, strict=True)
    ]
    last = max((n for n, tally in enumerate(tallies, start=1) if tally.made), default=0)
    return tallies[:last]


def kind_filter(kind: str) -> str:
    """Return the value of the filter `kind` for a kind of the rollups."""
    names = {"other_invalid": "other", "call_other": "provider_error"}
    return names.get(kind, kind.removeprefix("call_"))


def kind_words(kind: str) -> str:
    """Return a kind of the rollups as a table names it."""
    return kind_filter(kind).replace("_", " ")


def latency_percentile(counts: Sequence[int], share: float) -> float | None:
    """Estimate a percentile (share of 0 to 1) in milliseconds from counts by bucket.

    Calls count as evenly spread within a bucket; of the last one, which is unbounded, only the
    lower bound is known. None without a call.
    """
    total = sum(counts)
    if not total:
        return None
    target, passed = share * total, 0
    bounds = (0, *LATENCY_BOUNDS_MS)
    for index, count in enumerate(counts):
        if count and passed + count >= target:
            low = bounds[index]
            high = bounds[index + 1] if index + 1 < len(bounds) else low
            return low + (high - low) * (target - passed) / count
        passed += count
    return float(bounds[-1])


USED = ("input_tokens", "output_tokens", *LATENCY)


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of all attempts, and how many took how long, by bucket."""

    input_tokens: int = 0
    output_tokens: int = 0
    latency: Sequence[int] = (0,) * len(LATENCY)

    @classmethod
    def of(cls, sums: Sequence[int]) -> "TokenUsage":
        """Return the usage of sums of `USED`."""
        return cls(sums[0], sums[1], sums[2:])

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def p95_ms(self) -> float | None:
        """The latency that 95 % of the attempts stay below; None where it is not sent."""
        return latency_percentile(self.latency, 0.95)

    def plus(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            tuple(map(add, self.latency, other.latency)),
        )


NO_USAGE = TokenUsage()


def answer_tokens(sums: Mapping[str, int]) -> float | None:
    """Return the mean output tokens of a valid answer; None if unknown. `sums` are of `ANSWERS`."""
    tokens = sums["output_tokens"] - sums["invalid_output_tokens"]
    return tokens / sums["succeeded"] if sums["succeeded"] > 0 and tokens > 0 else None


def cost_of(sums: Mapping[str, int]) -> Mapping[str, float | None]:
    buckets = [sums[name] for name in LATENCY]
    calls = sums["attempts"]
    retries = sums["retry_input_tokens"] + sums["retry_output_tokens"]
    return {
        "half_ms": latency_percentile(buckets, 0.5),
        "nearly_all_ms": latency_percentile(buckets, 0.95),
        "output_tokens": sums["output_tokens"] / calls if calls else None,
        "retry_tokens": retries / calls if calls else None,
    }
