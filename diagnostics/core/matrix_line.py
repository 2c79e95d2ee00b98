"""What the matrix of models says, in one sentence."""

from dataclasses import dataclass

from diagnostics.core.charts.mark import Tone
from diagnostics.core.matrix import Matrix, Row
from diagnostics.core.statistics import LEAST_TRIALS
from diagnostics.core.wording import percent, plural, points, shorten

LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class MatrixLine:
    """Tone and sentence; `row` is the model that it names, if it names one."""

    tone: Tone
    sentence: str
    beside: str = ""
    row: Row | None = None


def matrix_line(matrix: Matrix) -> MatrixLine:
    """Name the worst model and the kind that rose most, or say that all is as usual."""
    if not matrix.rows:
        return MatrixLine("quiet", "No model was called in this time.")
    worse = [row for row in matrix.rows if row.total.level > 0]
    if worse:
        return _worst(worse, len(matrix.rows))
    told = [row for row in matrix.rows if row.total.is_enough]
    if not told:
        return MatrixLine(
            "quiet",
            "There is not enough data to compare models.",
            f"A model needs {LEAST_TRIALS} calls now and in the week before.",
        )
    few = len(matrix.rows) - len(told)
    beside = f"{plural(few, 'model')} with too few calls to say." if few else ""
    sentence = f"All {plural(len(told), 'model')} within baseline."
    if len(told) == 1:
        sentence = "The model is within its baseline."
    return MatrixLine("good", sentence, beside)


def name_of(provider: str | None, model: str | None) -> str:
    """Write a model's name for a sentence."""
    return "/".join(
        shorten(name, LONGEST_NAME) if name else "unknown" for name in (provider, model)
    )


def top_kind(row: Row) -> str:
    """Give the kind whose failures exceed the baseline most; empty without one."""
    risen = [(c.difference or 0.0, column.label) for column, c in row.cells if c.level > 0]
    return max(risen)[1] if risen else ""


def _worst(worse: list[Row], models: int) -> MatrixLine:
    row = worse[0]
    total = row.total
    kind = top_kind(row)
    sentence = (
        f"{name_of(row.provider, row.model)} fails {percent(total.share, 0)} of"
        f" {plural(total.calls, 'call')} ({points(total.difference)})"
        f"{f', mostly {kind}' if kind else ''}."
    )
    others = len(worse) - 1
    beside = [f"{plural(others, 'other model')} above baseline."] if others else []
    if models > len(worse):
        rest = plural(models - len(worse), "other model")
        beside.append(f"{rest} within baseline or with too few calls to say.")
    return MatrixLine("bad", sentence, " ".join(beside), row)
