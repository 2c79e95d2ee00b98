"""Valid but bad: runs with a valid answer that was assessed as bad later."""

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

# An unchecked answer is one that nobody but its judge looked at.
VALID = (RunOutcome.OK_FIRST, RunOutcome.RECOVERED, RunOutcome.UNCHECKED)
NOT_ASSESSED = Side(0, 0)
COUNTED = {
    "assessed": Count("correlation_id"),
    "worse": Count("correlation_id", filter=Q(is_bad=True)),
}


def assessed_as(project_id: int, correlation_ids: Collection[str]) -> Mapping[str, AssessedAs]:
    """Return the assessments of runs, by id: bad if any is."""
    assessments = _assessments(project_id).filter(correlation_id__in=correlation_ids)
    # `bad` sorts last, so it wins.
    rows = assessments.order_by("-verdict").values_list("correlation_id", "verdict").distinct()
    return {name: AssessedAs(verdict) for name, verdict in rows}


def assessments_of(project_id: int, correlation_id: str) -> QuerySet[Assessment]:
    """Return the assessments of a run, the latest first."""
    assessments = _assessments(project_id).filter(correlation_id=correlation_id)
    return assessments.order_by("-assessed_at", "pk")


def keep_assessed(runs: QuerySet[AgentRun], verdict: str) -> QuerySet[AgentRun]:
    """Keep the runs assessed in this way: bad if any assessment is."""
    assessments = Assessment.objects.filter(
        project_id=OuterRef("project_id"), correlation_id=OuterRef("correlation_id")
    )
    is_bad = Exists(assessments.filter(verdict=AssessedAs.BAD))
    return runs.filter(is_bad if verdict == AssessedAs.BAD else Exists(assessments) & ~is_bad)


def worse_by_series(
    project_id: int, window: TimeWindow, terms: Sequence[Term]
) -> Mapping[SeriesKey, Side]:
    """Return the runs assessed as bad among the assessed valid ones, by series.

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
    """Return the same of all runs, in a window and in the one before it."""
    both = replace(window, since=before.since)
    runs = _valid_runs(project_id, both, terms).annotate(is_now=Q(began_at__gte=window.since))
    rows = runs.values_list("is_now").annotate(**COUNTED)
    sides = {is_now: Side(worse, assessed) for is_now, assessed, worse in rows}
    return sides.get(True, NOT_ASSESSED), sides.get(False, NOT_ASSESSED)


def _assessments(project_id: int) -> QuerySet[Assessment]:
    return Assessment.objects.filter(project_id=project_id)


def _valid_runs(project_id: int, window: TimeWindow, terms: Sequence[Term]) -> QuerySet[AgentRun]:
    """Return the assessed valid runs that began in a window; none for fields that runs lack."""
    is_known = all(term.field in FIELDS for term in terms)
    known = Query(tuple(terms) if is_known else ())
    selection = Selection(text=known, begin=window.since, end=window.until)
    assessments = _assessments(project_id).filter(correlation_id=OuterRef("correlation_id"))
    runs = runs_of(project_id, selection).filter(Exists(assessments), outcome__in=VALID).order_by()
    runs = runs if is_known else runs.none()
    return runs.annotate(is_bad=Exists(assessments.filter(verdict=AssessedAs.BAD)))
