"""Queries of the verdict: curves of series, cells by version, evidence of failures."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType

from django.db.models import Min, Q, QuerySet

from diagnostics.analysis.series import SeriesKey
from diagnostics.ingest.deploy_items import ObservedKind
from diagnostics.ingest.models import observed_changes, reported_deploys
from diagnostics.queries.call_counts import UNSAID
from diagnostics.queries.series import ids_of, window_for
from diagnostics.queries.sums import Question, Row, Slots, sum_rollups
from diagnostics.selection.conditions import narrow, term_params, within, write_terms
from diagnostics.selection.query_language import Query, Term
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event, EventPayload, Series, payloads_of
from diagnostics.store.rollups import CALL_ERRORS, INVALID, SERIES
from diagnostics.store.sql import MEASURES_OF_EVENTS, fetch, fill, statement
from diagnostics.store.windows import WIDTHS, Grain, TimeWindow, align, align_to, floor
from diagnostics.verdict.cells import COUNTED, LOCAL, CountCell, Dimensions, count_calls, read_cells
from diagnostics.verdict.curves import Curves, SeriesCurve, Stretch
from diagnostics.verdict.evidence import (
    Evidence,
    FailedCalls,
    FailureEvidence,
    Place,
    gather_evidence,
)
from diagnostics.verdict.hypotheses import FirstSeen, ReportedDeploy
from diagnostics.verdict.judging import WEEK
from diagnostics.verdict.wording import ObservedChange
from failsoft.events import EventKind

HOUR = WIDTHS[Grain.HOUR]
DAY = WIDTHS[Grain.DAY]
OURS = ("prompt_version", "schema", "schema_version", "source", "release")
"""The dimensions of a call that we decide; what answered is known only with the answer."""
ANSWERED = ("served", "region", "credential")
SAMPLED = 200
MOST_READ = 100_000
"""The most calls of an hour that are read one by one."""
EVENTS_REACH = timedelta(days=2)
"""The longest time in which single events are searched for first calls of a version."""
OTHER_CALL = "call_other"


@dataclass(frozen=True)
class StoredCounts:
    """The rollup counts of the calls in a selection, each query read once."""

    project_id: int
    selection: Selection
    stretch: Stretch
    series: Sequence[int] | None = None
    """The ids of the series whose calls are counted; None counts all."""
    _curves: dict[tuple[Stretch, frozenset[SeriesKey] | None], Curves] = field(default_factory=dict)
    _cells: dict[tuple[datetime, datetime], Sequence[CountCell]] = field(default_factory=dict)

    def curves(self, stretch: Stretch, of: frozenset[SeriesKey] | None = None) -> Curves:
        """Return the calls and failures of series (None: all) in each slot of a stretch."""
        known = self._curves.get((stretch, of))
        if known is None:
            slots = Slots(stretch.origin, stretch.width, stretch.count)
            terms = self.selection.rollup_terms
            ids = self.series if of is None else ids_of(self.project_id, of)
            if of and ids is not None and len(ids) < len(of):
                # A series has no id before it is first folded.
                ids = None
            question = Question(stretch.window, SERIES, COUNTED, terms, slots, ids)
            end = len(SERIES)
            curves = defaultdict[SeriesKey, SeriesCurve](lambda: SeriesCurve([0] * slots.count))
            for row in sum_rollups(self.project_id, question):
                calls, failures, *_ = count_calls(row[end + 1 :])
                if calls:
                    curves[SeriesKey(*row[:end])].add(row[end], calls, failures)
            known = self._curves[stretch, of] = dict(curves)
        return known

    def cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return what was counted of every place in whole hours between two times."""
        known = self._cells.get((since, until))
        if known is None:
            question = self._hours(since, until, (*SERIES, *OURS, *ANSWERED))
            known = self._cells[since, until] = self._read(question)
        return known

    def cells_since(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return the same without the calls of its hour before `since`, if they are kept.

        In an hour with very many calls these count, too: nobody waits until all are read.
        """
        hour = floor(since, HOUR)
        if sum(cell.attempts for cell in self.cells(hour, hour + HOUR)) > MOST_READ:
            return self.cells(since, until)
        question = self._hours(since, until, (*SERIES, *OURS, *ANSWERED))
        size = len(question.dimensions)
        before = {row[:size]: row[size:] for row in self._sum_events(question, since)}
        return self._read(question, before)

    def series_cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return the counts of every series, to the minute where minutes are kept."""
        terms = self.selection.rollup_terms
        window = window_for(since, until, terms, self.stretch.window.until)
        return self._read(Question(window, SERIES, COUNTED, terms))

    def begun(self, since: datetime, until: datetime) -> list[FirstSeen]:
        """Return the first call of each version without calls in the week before."""
        hour = floor(since, HOUR)
        question = replace(self._hours(hour - WEEK, hour, OURS), measures=("events",))
        known = {row[: len(OURS)] for row in self._sum(question)}
        is_long = until - since > EVENTS_REACH
        first_calls = (self._begun_by_hour if is_long else self._begun_by_event)(since, until)
        return [
            FirstSeen(Dimensions(**dict(zip(OURS, version, strict=True))), at)
            for version, at in first_calls.items()
            if version not in known
        ]

    def _begun_by_event(self, since: datetime, until: datetime) -> dict[Row, datetime]:
        events = Event.objects.filter(project_id=self.project_id)
        own_events = within(narrow(events, self.selection), since, until).order_by()
        rows = own_events.values_list(*OURS).annotate(begun=Min("occurred_at"))
        return {tuple(version): at for *version, at in rows}

    def _begun_by_hour(self, since: datetime, until: datetime) -> dict[Row, datetime]:
        """Return the same by the hour: an onset known by the day needs no seconds."""
        window = align_to(Grain.HOUR, since, until)
        slots = Slots(window.since, HOUR, (window.until - window.since) // HOUR)
        question = Question(window, OURS, ("events",), self.selection.rollup_terms, slots)
        rows = sorted(self._sum(question), key=lambda row: -row[len(OURS)])
        return {row[: len(OURS)]: window.since + row[len(OURS)] * HOUR for row in rows}

    def deploys(self, since: datetime, until: datetime) -> list[ReportedDeploy]:
        """Return the deploys between two times."""
        return [
            ReportedDeploy(deploy.at, deploy.kind)
            for deploy in reported_deploys(self.project_id, since, until)
        ]

    def _hours(self, since: datetime, until: datetime, dimensions: Sequence[str]) -> Question:
        window = align_to(Grain.HOUR, since, until)
        return Question(window, dimensions, COUNTED, self.selection.rollup_terms)

    def _sum_events(self, question: Question, until: datetime) -> list[Row]:
        """Return the sums of single events from the beginning of a question on."""
        terms = question.terms
        text = fill(
            "sums_by_place",
            places=", ".join(question.dimensions),
            sums=", ".join(
                f"coalesce({MEASURES_OF_EVENTS[name]}, 0)" for name in question.measures
            ),
            terms=write_terms(terms),
        )
        times = {"since": question.window.since, "until": until}
        return fetch(text, {"project": self.project_id, **times, **term_params(terms)})

    def _read(
        self, question: Question, less: Mapping[Row, Row] = MappingProxyType({})
    ) -> Sequence[CountCell]:
        """Return the cells of a question, without some of its counts by place."""
        rows, size = self._sum(question), len(question.dimensions)
        for index, row in enumerate(rows if less else ()):
            taken = less.get(row[:size], (0,) * len(row))
            left = (max(count - known, 0) for count, known in zip(row[size:], taken, strict=False))
            rows[index] = (*row[:size], *left)
        return _read_cells(tuple(question.dimensions), tuple(rows))

    def _sum(self, question: Question) -> list[Row]:
        return sum_rollups(self.project_id, replace(question, series=self.series))


@lru_cache(maxsize=16)  # The hours that are over stay the same until the next one is.
def _read_cells(names: tuple[str, ...], rows: tuple[Row, ...]) -> Sequence[CountCell]:
    places = (Dimensions(**dict(zip(names, row, strict=False))) for row in rows)
    return tuple(read_cells(zip(places, (row[len(names) :] for row in rows), strict=True)))


def without_local(project_id: int, selection: Selection, now: datetime) -> Selection:
    """Exclude the environment `local` if there are others and none is selected.

    Goals on a laptop's model say nothing about production.
    """
    known = Series.objects.filter(project_id=project_id, environment=LOCAL)
    if any(term.field == "environment" for term in selection.terms) or not known.exists():
        return selection
    window = align_to(Grain.HOUR, *selection.window(now))
    question = Question(window, ("environment",), ("events",), selection.rollup_terms)
    if all(environment == LOCAL for environment, _ in sum_rollups(project_id, question)):
        return selection
    others = Term("environment", LOCAL, is_negated=True)
    return replace(selection, text=Query((*selection.text.terms, others)))


def evidence_of(
    project_id: int, series: SeriesKey | None, since: datetime, until: datetime, kind: str
) -> Evidence:
    """Return the evidence about a kind of failure since a time, and in the week before it."""
    known = series._asdict() if series else {}
    shared = {name: value for name, value in known.items() if value is not None}
    events = Event.objects.filter(
        project_id=project_id, occurred_at__gte=since, occurred_at__lt=until, **shared
    )
    latest = list(_filter_kind(events, kind).order_by("-occurred_at", "-event_id")[:SAMPLED])
    payloads = payloads_of(latest)
    terms = [Term(name, value, is_exact=True) for name, value in shared.items()]
    before = TimeWindow(floor(since, HOUR) - WEEK, floor(since, HOUR), Grain.HOUR)
    return gather_evidence(
        [failure_evidence(event, payloads.get(event.event_id)) for event in latest],
        _failed_calls(project_id, align(since, until, until), terms, kind),
        _failed_calls(project_id, before, terms, kind),
        _earlier_places(project_id, before, terms, kind) if kind in PLACED else {},
    )


PLACED: Mapping[str, str] = {
    "schema_invalid": EventKind.PARSE_INVALID,
    "duplicate_key": EventKind.PARSE_INVALID,
    "unknown_tool": EventKind.UNKNOWN_TOOL,
}
"""Kinds whose advice names places or tools, which are their groups' error types: their events."""


def _filter_kind(events: QuerySet[Event], kind: str) -> QuerySet[Event]:
    if kind in INVALID:
        return events.filter(parse_error_type=kind.replace(UNSAID, "other"))
    if kind not in CALL_ERRORS:
        return events.filter(kind=kind)
    failed = events.filter(kind=EventKind.PROVIDER_ERROR)
    if kind != OTHER_CALL:
        return failed.filter(call_error_type=kind.removeprefix("call_"))
    names = [error.removeprefix("call_") for error in CALL_ERRORS if error != OTHER_CALL]
    return failed.filter(Q(call_error_type=None) | ~Q(call_error_type__in=names))


def _failed_calls(
    project_id: int, window: TimeWindow, terms: Sequence[Term], kind: str
) -> FailedCalls:
    rows = sum_rollups(project_id, Question(window, ("node",), COUNTED, terms))
    totals = [count_calls(row[1:]) for row in rows]
    return FailedCalls(
        sum(total.failures.get(kind, 0) for total in totals), sum(total.calls for total in totals)
    )


def _earlier_places(
    project_id: int, window: TimeWindow, terms: Sequence[Term], kind: str
) -> Mapping[Place, int]:
    segments = list(enumerate(window.segments))
    counted = "\nUNION ALL\n".join(
        _GROUPS.format(grain=segment.grain, place=index) for index, segment in segments
    )
    text = statement("earlier_failures").replace("<<counted>>", counted)
    params: dict[str, object] = {"project": project_id, **term_params(terms)}
    params["kind"], params["error_type"] = PLACED[kind], kind
    for index, segment in segments:
        params[f"since_{index}"], params[f"until_{index}"] = segment.since, segment.until
    rows = fetch(text.replace("<<terms>>", write_terms(terms, {"series": "series"})), params)
    return {(pointer, detail): count for pointer, detail, count in rows}


_GROUPS = """    SELECT group_id, series_id, seen FROM diagnostics_group_{grain}
    WHERE project_id = %(project)s AND bucket >= %(since_{place})s AND bucket < %(until_{place})s"""


def failure_evidence(event: Event, payload: EventPayload | None) -> FailureEvidence:
    """Return the evidence of a failure; `payload` is None if its details were deleted."""
    evidence = FailureEvidence(
        event.output_tokens,
        call_error=event.call_error_type,
        reasoning_tokens=event.reasoning_tokens,
    )
    if payload is None:
        return evidence
    return replace(
        evidence,
        max_output_tokens=payload.max_output_tokens,
        tool=payload.tool,
        attributes=payload.attributes,
        errors=payload.validation_errors,
    )


NEARBY = timedelta(hours=1)


def observed_near(
    project_id: int, touched: Collection[SeriesKey], low: datetime, high: datetime
) -> ObservedChange | None:
    """Return the observed change of an answerer of the hit series around the onset.

    Of several the first one is returned.
    """
    hit = {(series.environment, series.provider, series.model) for series in touched}
    for row in observed_changes(project_id, low - NEARBY, high + NEARBY).reverse():
        if (row.environment, row.provider, row.model) in hit:
            return ObservedChange(ObservedKind(row.kind), row.previous or "", row.version, row.at)
    return None


def last_change(project_id: int, until: datetime) -> datetime | None:
    """Return the time of the latest deploy before a time."""
    return reported_deploys(project_id, until=until).values_list("at", flat=True).first()
