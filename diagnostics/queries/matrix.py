"""Models by kinds of failure, shaded by what exceeds the baseline.

1. A cell's share is its failures over the calls of its row; the baseline is the same over
   the time before.
2. A cell is shaded by the size of the difference, in points, if its interval (Newcombe, at
   95 % for all cells of the table together: Bonferroni) excludes zero, both sides have 20 calls
   and the higher one 5 failures.
3. Rows are sorted by the lower bound of their excess, columns by failures beyond the baseline.
   Kinds beyond the ninth share one column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from diagnostics.analysis.series import ModelKey, name_of
from diagnostics.analysis.statistics import (
    LEAST_FAILURES,
    LEAST_TRIALS,
    Z_95,
    is_enough,
    newcombe_interval,
    z_of,
)
from diagnostics.figures import Tone, percent, plural, points
from diagnostics.queries.call_counts import CallCounts, Side, add_counts, kind_words

STEPS = (0.02, 0.05, 0.15)
MOST_KINDS = 9
OTHERS = "others"


@dataclass(frozen=True)
class Excess:
    """A share and its baseline, with the interval of their difference."""

    a: Side
    b: Side
    low: float
    high: float
    # How many comparisons are shown together: one alone is more easily above chance.
    among: int = field(default=1, kw_only=True)

    @property
    def is_enough(self) -> bool:
        return is_enough(self.a.trials, self.b.trials)

    @property
    def is_clear(self) -> bool:
        """Whether it is more than chance, in a table of as many comparisons."""
        if not self.is_enough or (self.a if self.low > 0 else self.b).good < LEAST_FAILURES:
            return False
        low, high = _interval(self.a.bounded, self.b.bounded, z_of(self.among))
        return low > 0 or high < 0

    @property
    def difference(self) -> float | None:
        """The share less its baseline, None without calls."""
        if self.a.share is None or self.b.share is None:
            return None
        return self.a.share - self.b.share

    @cached_property
    def level(self) -> int:
        """0 within chance, 1 to 4 above the baseline, -1 below it."""
        if not self.is_clear:
            return 0
        return 1 + sum((self.difference or 0) >= s for s in STEPS) if self.low > 0 else -1

    @property
    def shade(self) -> str:
        """The name of the level, as a class."""
        return "less" if self.level < 0 else f"more-{self.level}" if self.level else ""


@dataclass(frozen=True, slots=True)
class Column:
    """A kind of failure; `kind` is empty for the shared last column."""

    kind: str
    label: str
    cell: Excess


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A model: its cells in the order of the columns, and the total of all kinds."""

    provider: str | None
    model: str | None
    now: CallCounts
    cells: Sequence[tuple[Column, Excess]]
    total: Excess

    @property
    def degraded(self) -> Side:
        """The runs that ended degraded at the model, of all that ended there."""
        return self.now.rates["degraded"]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows and columns, worst first, with the margins."""

    rows: Sequence[MatrixRow]
    columns: Sequence[Column]
    total: Excess
    degraded: Side


def excess(a: Side, b: Side) -> Excess:
    """Compare a share with its baseline; failures are limited to the number of calls."""
    return Excess(a, b, *_interval(a.bounded, b.bounded, Z_95))


def _interval(a: Side, b: Side, z: float) -> tuple[float, float]:
    return newcombe_interval(a.good, a.trials, b.good, b.trials, z)


def excess_of_rate(rate: str, now: CallCounts, before: CallCounts) -> Excess:
    return excess(now.rates[rate], before.rates[rate])


def build_matrix(
    now: Mapping[ModelKey, CallCounts], before: Mapping[ModelKey, CallCounts]
) -> Matrix:
    called = {key: counts for key, counts in now.items() if counts.calls}
    everything = add_counts(list(called.values()))
    past = add_counts([before[key] for key in called if key in before])
    columns = _columns(everything, past)
    rows = [
        _row(key, counts, before.get(key, CallCounts()), columns, len(called))
        for key, counts in called.items()
    ]
    total = excess_of_rate("failed", everything, past)
    return Matrix(sorted(rows, key=_place), columns, total, everything.rates["degraded"])


def excess_of_kind(kind: str, now: CallCounts, before: CallCounts) -> Excess:
    return excess(now.side_of(kind), before.side_of(kind))


def _place(row: MatrixRow) -> tuple[bool, float, float]:
    low = row.total.low if row.total.is_enough else -1.0
    return (row.total.level < 1, -low, -(row.total.a.share or 0.0))


def _row(
    key: ModelKey, now: CallCounts, before: CallCounts, columns: Sequence[Column], models: int
) -> MatrixRow:
    own_kinds = [column.kind for column in columns if column.kind]
    row = [
        excess_of_kind(column.kind, now, before) if column.kind else _others(own_kinds, now, before)
        for column in columns
    ]
    among = models * len(columns)
    cells = [
        (column, replace(cell, among=among)) for column, cell in zip(columns, row, strict=True)
    ]
    total = replace(excess_of_rate("failed", now, before), among=models)
    return MatrixRow(*key, now, cells, total)


def _columns(now: CallCounts, before: CallCounts) -> list[Column]:
    def beyond(kind: str) -> float:
        baseline = before.of_kind(kind) / before.calls if before.calls else 0.0
        return now.of_kind(kind) - baseline * now.calls

    kinds = sorted(now.by_kind, key=lambda kind: (-beyond(kind), kind))
    shown = kinds if len(kinds) <= MOST_KINDS + 1 else kinds[:MOST_KINDS]
    columns = [Column(kind, kind_words(kind), excess_of_kind(kind, now, before)) for kind in shown]
    if len(shown) < len(kinds):
        columns.append(Column("", OTHERS, _others(shown, now, before)))
    return columns


def _others(own_kinds: Sequence[str], now: CallCounts, before: CallCounts) -> Excess:
    return excess(
        Side(_rest(own_kinds, now), now.calls), Side(_rest(own_kinds, before), before.calls)
    )


def _rest(own_kinds: Sequence[str], counts: CallCounts) -> int:
    return sum(count for kind, count in counts.by_kind.items() if kind not in own_kinds)


@dataclass(frozen=True, slots=True)
class MatrixSummary:
    """Tone and sentence; `row` is the model that it names, if any."""

    tone: Tone
    sentence: str
    beside: str = ""
    row: MatrixRow | None = None


def summarise_matrix(matrix: Matrix, span: str = "") -> MatrixSummary:
    """Return a sentence on the worst model and the kind that rose most, or that all is well.

    `span` is the time range, such as `24 h`.
    """
    if not matrix.rows:
        return MatrixSummary("quiet", "No calls in this range.")
    worse = [row for row in matrix.rows if row.total.level > 0]
    if worse:
        return _worst(worse, matrix.rows, span)
    comparable = [row for row in matrix.rows if row.total.is_enough]
    if not comparable:
        return MatrixSummary(
            "quiet",
            "Not enough data to compare models.",
            f"A model needs {LEAST_TRIALS} calls in this range and in the baseline week.",
        )
    missing = len(matrix.rows) - len(comparable)
    beside = _too_few(missing, "model") if missing else ""
    sentence = f"{'' if missing else 'All '}{plural(len(comparable), 'model')} within baseline."
    if len(comparable) == 1:
        sentence = "The model is within its baseline."
    return MatrixSummary("good", sentence, beside)


def top_kind(row: MatrixRow) -> str:
    """Return the kind whose failures exceed the baseline most; empty without one."""
    risen = [(cell.difference or 0.0, column.label) for column, cell in row.cells if cell.level > 0]
    return max(risen)[1] if risen else ""


def _worst(worse: list[MatrixRow], rows: Sequence[MatrixRow], span: str) -> MatrixSummary:
    row = worse[0]
    total = row.total
    kind = top_kind(row)
    sentence = (
        f"{name_of(row.provider, row.model)} fails {percent(total.a.share)} of"
        f" {plural(total.a.trials, row.now.noun)}{f' in {span}' if span else ''}"
        f" ({points(total.difference)})"
        f"{f', mostly {kind}' if kind else ''}."
    )
    others = len(worse) - 1
    beside = [f"{plural(others, 'other model')} above baseline."] if others else []
    well = sum(row.total.is_enough for row in rows) - len(worse)
    if well:
        beside.append(f"{plural(well, 'other model')} within baseline.")
    missing = len(rows) - len(worse) - well
    if missing:
        beside.append(_too_few(missing, "other model"))
    return MatrixSummary("bad", sentence, " ".join(beside), row)


def _too_few(models: int, noun: str) -> str:
    return f"{plural(models, noun)} with too few calls to compare, now or in the baseline week."
