"""What rollups say of a stretch of calls, under names that pages can use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from diagnostics.analysis.statistics import AttemptTally
from diagnostics.store.rollups import (
    CALL_ERRORS,
    FAILURE_KINDS,
    INVALID,
    LATENCY,
    LATENCY_BOUNDS_MS,
)

UNSAID = "other_invalid"
"""Runs that were posted as outcomes do not say which kind of failure it was."""
MOST_ATTEMPTS = 5
TRIED = tuple(f"tried_{number}" for number in range(2, MOST_ATTEMPTS + 1))
GOOD = tuple(f"good_{number}" for number in range(2, MOST_ATTEMPTS + 1))
CALLS: tuple[str, ...] = (
    "attempts",
    "invalid",
    "runs",
    "degraded",
    "ok_first",
    "repaired",
    *FAILURE_KINDS,
)
"""What is asked for to compare calls."""
FAILED = (*INVALID, *CALL_ERRORS)
LADDERS: tuple[str, ...] = ("retries", "succeeded", *TRIED, *GOOD)
COSTS: tuple[str, ...] = (
    "input_tokens",
    "output_tokens",
    "retry_input_tokens",
    "retry_output_tokens",
    "retry_ms",
    "invalid_input_tokens",
    "invalid_output_tokens",
    "latency_count",
    "latency_ms",
    "invalid_latency_count",
    "invalid_latency_ms",
)
EVERYTHING = (*CALLS, *LADDERS, *COSTS, *LATENCY)


LEAST_POSTED = 0.9
"""Fewer calls for a run than this: an agent posts outcomes, and some calls one by one."""


@dataclass(frozen=True, slots=True)
class Side:
    """So many of so many, as one side of a comparison."""

    good: int
    trials: int

    @property
    def bounded(self) -> "Side":
        """The same, where more than all of them count as all."""
        return Side(max(min(self.good, self.trials), 0), self.trials)

    @property
    def share(self) -> float | None:
        """Between 0 and 1, None without a trial."""
        return self.bounded.good / self.trials if self.trials else None


@dataclass(frozen=True, slots=True)
class CallCounts:
    """Calls and runs of a stretch, by kind of failure where it is known."""

    calls: int = 0
    failed: int = 0
    runs: int = 0
    degraded: int = 0
    ok_first: int = 0
    repaired: int = 0
    by_kind: Mapping[str, int] = field(default_factory=dict)
    noun: str = "call"
    """What `calls` are: runs, where agents post outcomes and not every call."""

    def of_kind(self, kind: str) -> int:
        """How many failures of a kind there were."""
        return self.by_kind.get(kind, 0)

    @property
    def rates(self) -> Mapping[str, Side]:
        """The four rates that stretches are compared by."""
        return {
            "degraded": Side(self.degraded, self.runs),
            "failed": Side(self.failed, self.calls),
            "first_pass": Side(self.ok_first, self.runs),
            "repaired": Side(self.repaired, self.runs - self.ok_first),
        }


def count_calls(sums: Mapping[str, int]) -> CallCounts:
    """Read sums of `CALLS`; where not every call was posted, runs stand for them."""
    calls, runs, degraded = sums["attempts"], sums["runs"], sums["degraded"]
    by_kind = {kind: sums[kind] for kind in FAILURE_KINDS if sums[kind]}
    failed = sum(map(sums.__getitem__, FAILED))
    if not calls:
        calls, failed = runs, degraded
        by_kind = {UNSAID: degraded} if degraded else {}
    noun = "run" if counts_runs(sums["attempts"], runs) else "call"
    ended = sums["ok_first"], sums["repaired"]
    return CallCounts(
        runs if noun == "run" else calls, failed, runs, degraded, *ended, by_kind, noun
    )


def counts_runs(calls: int, runs: int) -> bool:
    """Whether shares are of runs: agents posted outcomes, and no event for most calls."""
    return calls < LEAST_POSTED * runs


def add_counts(counts: Sequence[CallCounts]) -> CallCounts:
    """Add counts up."""
    kinds = dict.fromkeys(kind for one in counts for kind in one.by_kind)
    return CallCounts(
        sum(one.calls for one in counts),
        sum(one.failed for one in counts),
        sum(one.runs for one in counts),
        sum(one.degraded for one in counts),
        sum(one.ok_first for one in counts),
        sum(one.repaired for one in counts),
        {kind: sum(one.of_kind(kind) for one in counts) for kind in kinds},
        "run" if any(one.noun == "run" for one in counts) else "call",
    )


def tallies_of(sums: Mapping[str, int]) -> list[AttemptTally]:
    """Read sums of `CALLS` and `LADDERS` as attempts 1, 2, ...; 5 stands for all later ones.

    Attempts that nobody made are left out at the end.
    """
    made = [sums["attempts"] - sums["retries"], *(sums[name] for name in TRIED)]
    later = [sums[name] for name in GOOD]
    good = [sums["succeeded"] - sum(later), *later]
    found = [
        AttemptTally(tried, min(max(well, 0), tried))
        for tried, well in zip(made, good, strict=True)
    ]
    last = max((n for n, tally in enumerate(found, start=1) if tally.made), default=0)
    return found[:last]


def kind_filter(kind: str) -> str:
    """Return the value of the filter `kind` that stands for a kind of the rollups."""
    names = {"other_invalid": "other", "call_other": "provider_error"}
    return names.get(kind, kind.removeprefix("call_"))


def latency_percentile(counts: Sequence[int], share: float) -> float | None:
    """Estimate a percentile (share of 0 to 1) in milliseconds from counts by bucket.

    Inside a bucket calls are taken as evenly spread; of the last one, which has no end,
    only its beginning is known. None without a call.
    """
    total = sum(counts)
    if not total:
        return None
    wanted, seen = share * total, 0
    bounds = (0, *LATENCY_BOUNDS_MS)
    for place, count in enumerate(counts):
        if count and seen + count >= wanted:
            low = bounds[place]
            high = bounds[place + 1] if place + 1 < len(bounds) else low
            return low + (high - low) * (wanted - seen) / count
        seen += count
    return float(bounds[-1])


ANSWERS: tuple[str, ...] = ("succeeded", "output_tokens", "invalid_output_tokens")


def answer_tokens(sums: Mapping[str, int]) -> float | None:
    """Return the mean output tokens of a valid answer, from sums of `ANSWERS`; None: not told."""
    tokens = sums["output_tokens"] - sums["invalid_output_tokens"]
    return tokens / sums["succeeded"] if sums["succeeded"] > 0 and tokens > 0 else None


@dataclass(frozen=True, slots=True)
class CallCost:
    """What a call took, on average or at a percentile."""

    half_ms: float | None
    nearly_all_ms: float | None
    output_tokens: float | None
    retry_tokens: float | None


def cost_of(sums: Mapping[str, int]) -> CallCost:
    """Read sums of `EVERYTHING`."""
    buckets = [sums[name] for name in LATENCY]
    calls = sums["attempts"]
    retries = sums["retry_input_tokens"] + sums["retry_output_tokens"]
    return CallCost(
        latency_percentile(buckets, 0.5),
        latency_percentile(buckets, 0.95),
        sums["output_tokens"] / calls if calls else None,
        retries / calls if calls else None,
    )
