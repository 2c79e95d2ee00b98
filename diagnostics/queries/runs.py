"""The list of runs in a selection, newest first, page by page, and their assessments.

The row of a run serves most filters. Words, pointers and the like are searched in its events:
the newest runs first, within a time limit, and at most 7 days of them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Count, Exists, F, Func, OuterRef, Q, QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import Collate

from diagnostics.analysis.series import SeriesKey
from diagnostics.queries.call_counts import Side
from diagnostics.queries.events import scan
from diagnostics.rest.cursors import Keyset, read_cursor, write_cursor
from diagnostics.selection import conditions
from diagnostics.selection.query_language import Query, Term, Word
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event
from diagnostics.store.rollups import SERIES
from diagnostics.store.run_models import AgentRun, AssessedAs, Assessment, RunOutcome
from diagnostics.store.sql import NAMED, fetch, fill
from diagnostics.store.windows import TimeWindow
from failsoft.events import CallErrorType, EventKind, ParseErrorType

RUN_ORDER = Keyset("began_at", "correlation_id", str)
COLUMNS = (
    *("environment", "provider", "model", "source", "release"),
    *("prompt_version", "schema", "correlation_id"),
)
"""The columns of a run; those of models and versions are from its deciding call."""
FIELDS = (*COLUMNS, "node", "kind", "outcome", "attempt")
"""The fields that the row of a run can filter by."""
OUTCOMES = {**{outcome.value: outcome for outcome in RunOutcome}, "repaired": RunOutcome.RECOVERED}
KINDS = frozenset((*EventKind, *ParseErrorType, *CallErrorType))
# The kinds in the index of failures.
HAS_FAILED = ~Q(kinds=[])
# A run's reference is compared byte by byte; an event's has the collation of its index.
BY_BYTE = Collate("correlation_id", "C")
# The runs of so few references are read one by one, those of more newest first: the server
# cannot know beforehand how rare a word is.
MOST_KNOWN = 300
INSTANT = timedelta(microseconds=1)
SEARCHES = ("run_references",)
"""The statements whose rows are the references of runs that have a word."""


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of runs and the cursor of the next one.

    `reached` says how far back the search went, if it ended before the page was full.
    """

    runs: list[AgentRun]
    after: str | None
    reached: datetime | None = None


def runs_of(
    project_id: int, selection: Selection, searches: Sequence[str] = SEARCHES
) -> QuerySet[AgentRun]:
    """Return the runs of a project that meet a selection and began in its times, newest first."""
    runs = AgentRun.objects.filter(project_id=project_id)
    if selection.begin is not None:
        runs = runs.filter(began_at__gte=selection.begin)
    if selection.end is not None:
        runs = runs.filter(began_at__lt=selection.end)
    return conditions.narrow_rows(
        runs,
        selection,
        lambda term: _condition(project_id, term, selection.begin),
        lambda word: _condition_of_word(project_id, word, selection.begin, searches),
    ).order_by("-began_at", "-correlation_id")


def searches_events(selection: Selection) -> bool:
    """Whether the rows of runs alone cannot answer."""
    return bool(selection.text.words) or any(term.field not in FIELDS for term in selection.terms)


def read_runs(
    project_id: int,
    selection: Selection,
    limit: int,
    cursor: str | None,
    now: datetime,
    keep: Callable[[QuerySet[AgentRun]], QuerySet[AgentRun]] = lambda runs: runs,
    searches: Sequence[str] = SEARCHES,
) -> RunPage:
    """Return a page of the runs that meet a selection; raises BadCursorError.

    Keyset on (began_at, correlation_id): stable while runs keep coming in.
    """
    if not searches_events(selection):
        return RunPage(*RUN_ORDER.page(keep(runs_of(project_id, selection)), limit, cursor))
    after = RUN_ORDER.after(cursor)

    def between(begin: datetime, end: datetime) -> QuerySet[AgentRun]:
        stretch = replace(selection, begin=begin, end=end)
        return keep(runs_of(project_id, stretch, searches)).filter(after)

    since, until, _ = selection.scanned_window(now)
    # Include the whole instant of the cursor: its row may not be the last in it.
    until = min(until, read_cursor(cursor, str)[0] + INSTANT) if cursor else until
    scanned = scan(between, since, until, limit + 1)
    page = RunPage(*RUN_ORDER.cut(scanned.rows, limit))
    if page.after or scanned.reached <= since:
        return page
    return RunPage(page.runs, write_cursor(scanned.reached, ""), scanned.reached)


def _condition(project_id: int, term: Term, since: datetime | None) -> Q:
    if term.field in COLUMNS:
        return conditions.matches(term.field, term)
    match term.field, term.value:
        case "node", value:
            return Q(nodes__contains=[value])
        case "attempt", None:
            return Q(attempts=0)
        case "attempt", str(number):
            return Q(attempts__gte=int(number))
        case "kind", "succeeded":
            return Q(ok_first__gt=0) | Q(recovered__gt=0) | Q(unchecked__gt=0)
        case "kind", value if value not in KINDS:
            # Known without reading every failed run.
            return Q(pk__in=())
        case "kind", value:
            return HAS_FAILED & Q(kinds__contains=[value])
        case "outcome", RunOutcome.DEGRADED:
            return HAS_FAILED & Q(outcome=RunOutcome.DEGRADED)
        case "outcome", str(value) if value in OUTCOMES:
            return Q(outcome=OUTCOMES[value])
    # The caller negates it if needed.
    plain = Selection(text=Query((Term(term.field, term.value, is_exact=term.is_exact),)))
    events = conditions.within(Event.objects.filter(project_id=project_id), since, None)
    matching = conditions.narrow(events, plain, conditions.Days(since)).values_list(BY_BYTE)
    few = [reference for (reference,) in matching[: MOST_KNOWN + 1]]
    return Q(correlation_id__in=few if len(few) <= MOST_KNOWN else matching)


def _condition_of_word(
    project_id: int, word: Word, since: datetime | None, searches: Sequence[str]
) -> Q:
    parts = {
        "in_event": conditions.word_in_event("event"),
        "in_details": conditions.word_in_details("payload"),
    }
    text = "\nUNION ALL\n".join(fill(name, **parts) for name in searches)
    params = conditions.word_params([word])
    values = {"project": project_id, "since": since, "beginning": params["word_0"][1:], **params}
    few = [reference for (reference,) in fetch(f"{text} LIMIT {MOST_KNOWN + 1}", values)]
    if len(few) <= MOST_KNOWN:
        return Q(correlation_id__in=few)
    places = [values[name] for name in NAMED.findall(text)]
    return Q(correlation_id__in=RawSQL(NAMED.sub("%s", text), places))  # noqa: S611 - our own text


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
