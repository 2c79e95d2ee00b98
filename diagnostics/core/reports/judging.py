"""How models stand in a report: against what is usual, worst first."""

from collections.abc import Iterable
from enum import StrEnum

from diagnostics.core.reports.document import Document, ModelFigures
from diagnostics.core.series import MINIMUM_RUNS, SeriesState, judge
from diagnostics.core.statistics import wilson_interval


class Standing(StrEnum):
    """How a model stands, worst first."""

    DEGRADING = "degrading"
    WATCH = "to watch"
    OK = "within baseline"
    FEW = "few runs"


ORDER = {standing: place for place, standing in enumerate(Standing)}
BAD = (Standing.DEGRADING, Standing.WATCH)


def standing_of(model: ModelFigures) -> Standing:
    """Judge a model by the rules of the Now page; few runs are judged by nobody."""
    if model.runs < MINIMUM_RUNS:
        return Standing.FEW
    usual = share_of(model.degraded_usual, model.runs_usual)
    state = judge(model.degraded, model.runs, usual)
    if state is SeriesState.DEGRADING:
        return Standing.DEGRADING
    return Standing.WATCH if state is SeriesState.WATCH else Standing.OK


def worst_first(models: Iterable[ModelFigures]) -> list[ModelFigures]:
    """Order models by standing, then by the lower bound of their share, then by runs."""
    return sorted(models, key=_rank)


def _rank(model: ModelFigures) -> tuple[int, float, int]:
    low, _ = wilson_interval(model.degraded, model.runs)
    return ORDER[standing_of(model)], -low if model.runs else 0.0, -model.runs


def share_of(part: int, whole: int) -> float | None:
    """Give a share, None of nothing."""
    return part / whole if whole else None


def change_of(model: ModelFigures) -> float | None:
    """Give the difference to the period before, None where one of them is empty."""
    now = share_of(model.degraded, model.runs)
    before = share_of(model.degraded_before, model.runs_before)
    return None if now is None or before is None else now - before


def has_news(document: Document) -> bool:
    """Ask whether a report says more than that all is as before."""
    incidents, quality = document.incidents, document.quality
    return bool(
        document.degradation
        or document.groups
        or (incidents and incidents.count)
        or quality.silent
        or (document.total.runs_before and not document.total.runs)
        or any(standing_of(model) in BAD for model in document.models)
    )
