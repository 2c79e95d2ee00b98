"""Where failures occur, by shares of failures and of calls, and what to do about them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from diagnostics.analysis.statistics import LEAST_FAILURES, wilson_interval
from diagnostics.failures.wording import advice_kind
from diagnostics.figures import percent
from diagnostics.verdict.advice import Advice, advise
from diagnostics.verdict.cause import Finding
from diagnostics.verdict.evidence import FailureEvidence, gather_evidence

MOST_ROWS = 5
LEAST_LIFT = 1.5
LEAST_CALLS = 50
MODEL = "model"


class FailurePlace(NamedTuple):
    """The dimensions that failures and calls share; None is a value (not reported)."""

    provider: str | None
    model: str | None
    environment: str | None
    prompt_version: str | None
    schema_version: str | None
    source: str | None
    release: str | None


@dataclass(frozen=True, slots=True)
class PlaceShare:
    values: Mapping[str, str | None]
    failures: int
    all_failures: int
    calls: int
    all_calls: int

    @property
    def name(self) -> str:
        missing = "unknown" if len(self.values) > 1 else "not set"
        return "/".join(value or missing for value in self.values.values())

    @property
    def share(self) -> float:
        return self.failures / self.all_failures if self.all_failures else 0.0

    @property
    def traffic(self) -> float | None:
        """Share of the calls; None where calls are not counted."""
        return min(self.calls / self.all_calls, 1.0) if self.all_calls else None

    @property
    def lift(self) -> float | None:
        """Its share of the failures over its share of the calls."""
        return self.share / self.traffic if self.traffic else None

    @property
    def rate(self) -> float | None:
        return min(self.failures / self.calls, 1.0) if self.calls else None

    @property
    def is_striking(self) -> bool:
        return self.failures >= LEAST_FAILURES and (self.lift or 0) >= LEAST_LIFT


@dataclass(frozen=True, slots=True)
class Spread:
    """A dimension with its largest places; `left_out` counts the others."""

    name: str
    rows: Sequence[PlaceShare]
    left_out: int

    @property
    def weight(self) -> float:
        """How far the worst share of failures exceeds its share of calls, to sort by."""
        return max((row.share - (row.traffic or 0) for row in self.rows), default=0.0)


DIMENSIONS: Mapping[str, Sequence[str]] = {
    MODEL: ("provider", "model"),
    "prompt version": ("prompt_version",),
    "schema version": ("schema_version",),
    "source": ("source",),
    "release": ("release",),
    "environment": ("environment",),
}


def divide(failures: Mapping[FailurePlace, int], calls: Mapping[FailurePlace, int]) -> list[Spread]:
    """Divide failures and calls by every dimension, the most significant one first."""
    spreads = [_divide(name, fields, failures, calls) for name, fields in DIMENSIONS.items()]
    return sorted(spreads, key=lambda dimension: -dimension.weight)


def summarise(dimensions: Sequence[Spread]) -> str:
    """Return where most failures are, in one clause; empty if they are spread like calls."""
    rows = [row for spread in dimensions for row in spread.rows[:1] if row.is_striking]
    if not rows:
        return ""
    row = max(rows, key=lambda row: row.share - (row.traffic or 0))
    field = next(iter(row.values))
    where = row.name if field == "provider" else f"{field.replace('_', ' ')} {row.name}"
    return f"{where} has {percent(row.share, 0)} of them and {percent(row.traffic, 0)} of the calls"


def _divide(
    name: str,
    fields: Sequence[str],
    failures: Mapping[FailurePlace, int],
    calls: Mapping[FailurePlace, int],
) -> Spread:
    def read(where: FailurePlace) -> tuple[str | None, ...]:
        return tuple(getattr(where, field) for field in fields)

    failed, called = _add_up(failures, read), _add_up(calls, read)
    if failed and not any(called[values] for values in failed):
        # Runs posted as outcomes lack the dimension, so no share is known.
        called.clear()
    rows = [
        PlaceShare(
            dict(zip(fields, values, strict=True)),
            count,
            failed.total(),
            called[values],
            called.total(),
        )
        # Places without a failure come last, sorted by calls.
        for values, count in sorted(
            {**dict.fromkeys(called, 0), **failed}.items(),
            key=lambda item: (-item[1], -called[item[0]]),
        )
        if count > 0 or called[values] > 0
    ]
    return Spread(name, rows[:MOST_ROWS], max(len(rows) - MOST_ROWS, 0))


def _add_up(
    counts: Mapping[FailurePlace, int], read: Callable[[FailurePlace], tuple[str | None, ...]]
) -> Counter[tuple[str | None, ...]]:
    totals: Counter[tuple[str | None, ...]] = Counter()
    for where, count in counts.items():
        totals[read(where)] += count
    return totals


def advise_group(
    kind: str, error_type: str, failures: Sequence[FailureEvidence], dimensions: Sequence[Spread]
) -> list[Advice]:
    finding = Finding(None, top_kind=advice_kind(kind, error_type))
    advice = advise(finding, gather_evidence(failures))
    other = _other_model(dimensions)
    return [*advice, *([other] if other else [])]


def _other_model(dimensions: Sequence[Spread]) -> Advice | None:
    """Return advice to use the model that fails least in this way, if that is significant."""
    rows = [row for spread in dimensions if spread.name == MODEL for row in spread.rows]
    rows = [row for row in rows if row.calls >= LEAST_CALLS]
    if len(rows) < 2:
        return None
    worst = max(rows, key=lambda row: row.rate or 0)
    best = min(rows, key=lambda row: (row.rate or 0, -row.calls))
    if _interval(best)[1] >= _interval(worst)[0]:
        return None
    low, high = _interval(best)
    return Advice(
        f"Send these calls to {best.name} for now.",
        f"Of its {best.calls:,} calls {percent(best.rate)} fail so"
        f" ({percent(low)} to {percent(high)}), of those of {worst.name}"
        f" {percent(worst.rate)}.",
    )


def _interval(row: PlaceShare) -> tuple[float, float]:
    return wilson_interval(min(row.failures, row.calls), row.calls)
