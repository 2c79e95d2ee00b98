"""Advice on one kind of failure, with evidence."""

from collections.abc import Sequence

from diagnostics.analysis.statistics import wilson_interval
from diagnostics.failures.places import PlaceShare, Spread
from diagnostics.failures.wording import advice_kind
from diagnostics.figures import percent
from diagnostics.verdict.advice import Advice, advise
from diagnostics.verdict.evidence import FailureEvidence, gather_evidence

LEAST_CALLS = 50
MODEL = "model"


def advise_group(
    kind: str, error_type: str, failures: Sequence[FailureEvidence], dimensions: Sequence[Spread]
) -> list[Advice]:
    advice = advise(advice_kind(kind, error_type), None, gather_evidence(failures))
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
