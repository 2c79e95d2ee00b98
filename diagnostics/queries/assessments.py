"""Valid but worse: runs that ended with a valid answer which was said to be bad later."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from django.db.models import Count, Exists, F, Func, OuterRef, Q, QuerySet, TextField

from diagnostics.analysis.series import SeriesKey
from diagnostics.queries.call_counts import Side
from diagnostics.queries.runs import FIELDS, runs_of
from diagnostics.selection.query_language import Query, Term
from diagnostics.selection.selection import Selection
from diagnostics.store.rollups import SERIES
from diagnostics.store.run_models import AgentRun, AssessedAs, Assessment, RunOutcome
from diagnostics.store.windows import TimeWindow

VALID = (RunOutcome.OK_FIRST, RunOutcome.RECOVERED)
NOT_ASSESSED = Side(0, 0)
COUNTED = {
    "assessed": Count("correlation_id"),
    "worse": Count("correlation_id", filter=Q(is_bad=True)),
}


def assessed_as(project_id: int, correlation_ids: Collection[str]) -> Mapping[str, AssessedAs]:
    """Return what was said of runs, by their ids: bad where anybody said so."""
    said = _said(project_id).filter(correlation_id__in=correlation_ids)
    # `bad` comes last, and stays.
    rows = said.order_by("-verdict").values_list("correlation_id", "verdict").distinct()
    return {name: AssessedAs(verdict) for name, verdict in rows}


def assessments_of(project_id: int, correlation_id: str) -> QuerySet[Assessment]:
    """Return what was said of a run, the latest first."""
    found = _said(project_id).filter(correlation_id=correlation_id)
    return found.order_by("-assessed_at", "pk")


def keep_assessed(runs: QuerySet[AgentRun], verdict: str) -> QuerySet[AgentRun]:
    """Keep the runs of which this was said; of a bad one, by anybody."""
    said = Assessment.objects.filter(
        project_id=OuterRef("project_id"), correlation_id=OuterRef("correlation_id")
    )
    is_bad = Exists(said.filter(verdict=AssessedAs.BAD))
    return runs.filter(is_bad if verdict == AssessedAs.BAD else Exists(said) & ~is_bad)


def worse_by_series(
    project_id: int, window: TimeWindow, terms: Sequence[Term]
) -> Mapping[SeriesKey, Side]:
    """Count runs that were said to be bad, of the valid ones of which anything was said.

    A run counts in the series of each of its nodes, under the model of its latest call.
    """
    runs = _valid_runs(project_id, window, terms).annotate(
        node=Func(F("nodes"), function="unnest", output_field=TextField())
    )
    rows = runs.values_list(*SERIES).annotate(**COUNTED)
    return {SeriesKey(*row[:4]): Side(row[5], row[4]) for row in rows.order_by()}


def worse_than_before(
    project_id: int, window: TimeWindow, before: TimeWindow, terms: Sequence[Term]
) -> tuple[Side, Side]:
    """Count the same of all runs together, in a window and in one that ends where it begins."""
    both = replace(window, since=before.since)
    runs = _valid_runs(project_id, both, terms).annotate(is_now=Q(began_at__gte=window.since))
    rows = runs.values_list("is_now").annotate(**COUNTED)
    sides = {is_now: Side(worse, assessed) for is_now, assessed, worse in rows}
    return sides.get(True, NOT_ASSESSED), sides.get(False, NOT_ASSESSED)


def _said(project_id: int) -> QuerySet[Assessment]:
    return Assessment.objects.filter(project_id=project_id)


def _valid_runs(project_id: int, window: TimeWindow, terms: Sequence[Term]) -> QuerySet[AgentRun]:
    """Return the assessed valid runs that began in a window; none by what runs do not know."""
    is_known = all(term.field in FIELDS for term in terms)
    known = Query(tuple(terms) if is_known else ())
    asked = Selection(text=known, begin=window.since, end=window.until)
    said = _said(project_id).filter(correlation_id=OuterRef("correlation_id"))
    runs = runs_of(project_id, asked).filter(Exists(said), outcome__in=VALID).order_by()
    runs = runs if is_known else runs.none()
    return runs.annotate(is_bad=Exists(said.filter(verdict=AssessedAs.BAD)))
