"""Reads of the verdict: curves of series, cells by versions, evidence of what failed."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

from django.db.models import Count, Min, Q, QuerySet

from diagnostics.analysis.series import SeriesKey
from diagnostics.ingest.deploy_items import ObservedKind
from diagnostics.ingest.deploys import observed_changes, reported_deploys
from diagnostics.queries.call_counts import UNSAID
from diagnostics.queries.events import payloads_of, window_for
from diagnostics.queries.sums import Question, Row, Slots, sum_rollups
from diagnostics.selection.conditions import ask_terms, narrow, within, write_terms
from diagnostics.selection.query_language import Query, Term
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event, EventPayload, Series
from diagnostics.store.rollups import CALL_ERRORS, INVALID, SERIES, VERSION
from diagnostics.store.sql import fetch, statement
from diagnostics.store.windows import WIDTHS, Grain, TimeWindow, align, align_to, floor
from diagnostics.verdict.cells import (
    COUNTED,
    LOCAL,
    CountCell,
    Dimensions,
    OmittedCalls,
    count_calls,
    omitted_kinds,
    read_cells,
)
from diagnostics.verdict.curves import Curves, SeriesBaseline, SeriesCurve, Stretch
from diagnostics.verdict.evidence import (
    EarlierFailures,
    Evidence,
    FailedCalls,
    FailureEvidence,
    Place,
    gather,
)
from diagnostics.verdict.judging import WEEK
from diagnostics.verdict.novelty import FirstSeen, ReportedDeploy
from diagnostics.verdict.wording import ObservedChange
from failsoft.events import EventKind

HOUR = WIDTHS[Grain.HOUR]
DAY = WIDTHS[Grain.DAY]
OURS = tuple(name for name in VERSION if name != "served")
"""What we decide of a call; who answered it is told with its answer only."""
SAMPLED = 200
EVENTS_REACH = timedelta(days=2)
"""Single events are asked for the first call of a version in so short a time at most."""
BAD = (EventKind.PARSE_INVALID, EventKind.PROVIDER_ERROR)
OTHER_CALL = "call_other"
CALLS = (*BAD, EventKind.SUCCEEDED)


_CurveRows = Mapping[Dimensions, Sequence[tuple[int, int, Mapping[str, int]]]]


@dataclass(frozen=True)
class StoredCounts:
    """What the rollups know of the calls that a selection keeps, read once for each question."""

    project_id: int
    selection: Selection
    stretch: Stretch
    _rows: dict[tuple[Stretch, Sequence[str]], _CurveRows] = field(default_factory=dict)
    _curves: dict[Stretch, Curves] = field(default_factory=dict)
    _cells: dict[tuple[datetime, datetime], list[CountCell]] = field(default_factory=dict)

    def curves(self, stretch: Stretch, left_out: Sequence[OmittedCalls] = ()) -> Curves:
        """Return the calls and failures of every series in each slot of a stretch.

        Where versions say what is left out, slots are hours at least.
        """
        is_of_series = all(one.is_of_series for one in left_out)
        named = SERIES if is_of_series else (*SERIES, *OURS)
        whole = self._curves.get(stretch, {}) if is_of_series else {}
        found: dict[SeriesKey, SeriesCurve] = {}
        for place, slots in self._counted(stretch, named).items():
            omitted = omitted_kinds(left_out, place)
            if omitted is None:
                continue
            if not omitted and place.who in whole:
                found[place.who] = whole[place.who]
                continue
            curve = found.get(place.who)
            if curve is None:
                curve = found[place.who] = SeriesCurve([0] * stretch.count)
            for slot, calls, failures in slots:
                curve.add(slot, calls, failures, omitted)
        if not left_out:
            self._curves[stretch] = found
        return found

    def _counted(self, stretch: Stretch, named: Sequence[str]) -> _CurveRows:
        """Return slot, calls and failures of each row, by place."""
        known = self._rows.get((stretch, named))
        if known is None:
            slots = Slots(stretch.origin, stretch.width, stretch.count)
            asked = Question(stretch.window, named, COUNTED, self.selection.rollup_terms, slots)
            places: dict[Row, list[tuple[int, int, Mapping[str, int]]]] = defaultdict(list)
            end = len(named)
            for row in self._sum(asked):
                calls, failures, _, _ = count_calls(row[end + 1 :])
                if calls:
                    places[row[:end]].append((row[end], calls, failures))
            known = self._rows[stretch, named] = {
                Dimensions(**dict(zip(named, key, strict=True))): rows
                for key, rows in places.items()
            }
        return known

    def usual(self) -> SeriesBaseline:
        """Return what is known of each series from the week before the stretch."""
        return self._usual

    @cached_property
    def _usual(self) -> SeriesBaseline:
        until = floor(self.stretch.window.since, HOUR)
        rows = self._sum(self._hours(until - WEEK, until, SERIES))
        known = {SeriesKey(*row[: len(SERIES)]): count_calls(row[len(SERIES) :]) for row in rows}
        older = replace(self._hours(until - WEEK, until - DAY, SERIES), measures=("runs",))
        return SeriesBaseline.of(known, {SeriesKey(*row[:-1]) for row in self._sum(older)})

    def cells(self, since: datetime, until: datetime) -> list[CountCell]:
        """Return what was counted of every place in whole hours between two times."""
        known = self._cells.get((since, until))
        if known is None:
            asked = self._hours(since, until, (*SERIES, *VERSION))
            named = len(asked.dimensions)
            known = self._cells[since, until] = list(
                read_cells(
                    (Dimensions(**dict(zip(asked.dimensions, row, strict=False))), row[named:])
                    for row in self._sum(asked)
                )
            )
        return known

    def series_cells(self, since: datetime, until: datetime) -> list[CountCell]:
        """Return what was counted of every series, from the minute on where minutes are kept."""
        terms = self.selection.rollup_terms
        asked = Question(window_for(since, until, terms, until), SERIES, COUNTED, terms)
        named = len(SERIES)
        return list(
            read_cells(
                (Dimensions(**dict(zip(SERIES, row, strict=False))), row[named:])
                for row in self._sum(asked)
            )
        )

    def begun(self, since: datetime, until: datetime, early: datetime) -> list[FirstSeen]:
        """Return the first call of each version that was not there the week before."""
        hour = floor(since, HOUR)
        asked = replace(self._hours(hour - WEEK, hour, OURS), measures=("events",))
        known = {row[: len(OURS)] for row in self._sum(asked)}
        if until - since > EVENTS_REACH:
            return self._begun_by_hour(since, until, early, known)
        events = Event.objects.filter(project_id=self.project_id)
        first = (
            within(narrow(events, self.selection), since, until)
            .order_by()
            .values_list(*OURS)
            .annotate(
                begun=Min("occurred_at"),
                calls=Count("event_id", filter=Q(kind__in=CALLS, occurred_at__lt=early)),
                bad=Count("event_id", filter=Q(kind__in=BAD, occurred_at__lt=early)),
            )
        )
        named = len(OURS)
        return [
            FirstSeen(Dimensions(**dict(zip(OURS, row, strict=False))), *row[named:])
            for row in first
            if row[:named] not in known
        ]

    def _begun_by_hour(
        self, since: datetime, until: datetime, early: datetime, known: set[Row]
    ) -> list[FirstSeen]:
        """Return the same from hours: an onset that is known to days needs no seconds."""
        window = align_to(Grain.HOUR, since, until)
        slots = Slots(window.since, HOUR, (window.until - window.since) // HOUR)
        asked = Question(window, OURS, COUNTED, self.selection.rollup_terms, slots)
        found: dict[Row, FirstSeen] = {}
        for row in sorted(self._sum(asked), key=lambda row: row[len(OURS)]):
            version, at = row[: len(OURS)], slots.since + row[len(OURS)] * HOUR
            calls, failures, _, _ = count_calls(row[len(OURS) + 1 :])
            place = Dimensions(**dict(zip(OURS, version, strict=True)))
            begun = found.setdefault(version, FirstSeen(place, at))
            if at < early:
                found[version] = replace(
                    begun, calls=begun.calls + calls, failed=begun.failed + sum(failures.values())
                )
        return [one for version, one in found.items() if version not in known]

    def told(self, since: datetime, until: datetime) -> list[ReportedDeploy]:
        """Return the deploys between two times."""
        return [
            ReportedDeploy(deploy.at, deploy.kind, deploy.version, deploy.source)
            for deploy in reported_deploys(self.project_id, since, until)
        ]

    def _hours(self, since: datetime, until: datetime, dimensions: Sequence[str]) -> Question:
        window = align_to(Grain.HOUR, since, until)
        return Question(window, dimensions, COUNTED, self.selection.rollup_terms)

    def _sum(self, asked: Question) -> list[Row]:
        return sum_rollups(self.project_id, asked)


def without_local(project_id: int, selection: Selection, now: datetime) -> Selection:
    """Leave calls of the environment `local` out, where others call and none is asked for.

    Goals tried on a laptop's model say nothing of those that people wait for.
    """
    known = Series.objects.filter(project_id=project_id, environment=LOCAL)
    if any(t.field == "environment" for t in selection.terms) or not known.exists():
        return selection
    window = align_to(Grain.HOUR, *selection.window(now))
    asked = Question(window, ("environment",), ("events",), selection.rollup_terms)
    if all(environment == LOCAL for environment, _ in sum_rollups(project_id, asked)):
        return selection
    others = Term("environment", LOCAL, is_negated=True)
    return replace(selection, text=Query((*selection.text.terms, others)))


def evidence_of(
    project_id: int, who: SeriesKey | None, since: datetime, until: datetime, kind: str
) -> Evidence:
    """Return what was seen of a kind of failure since a time, and in the week before it."""
    shared = {name: v for name, v in who._asdict().items() if v is not None} if who else {}
    events = Event.objects.filter(
        project_id=project_id, occurred_at__gte=since, occurred_at__lt=until, **shared
    )
    latest = list(_of_kind(events, kind).order_by("-occurred_at", "-event_id")[:SAMPLED])
    payloads = payloads_of(latest)
    terms = [Term(name, value, is_exact=True) for name, value in shared.items()]
    before = TimeWindow(floor(since, HOUR) - WEEK, floor(since, HOUR), Grain.HOUR)
    return gather(
        [seen_in(event, payloads.get(event.event_id)) for event in latest],
        _failed_calls(project_id, align(since, until, until), terms, kind),
        EarlierFailures(
            _failed_calls(project_id, before, terms, kind),
            _earlier_places(project_id, before, terms, kind) if kind in PLACED else {},
        ),
    )


PLACED: Mapping[str, tuple[str, str]] = {
    "schema_invalid": (EventKind.PARSE_INVALID, "schema_invalid"),
    "duplicate_key": (EventKind.PARSE_INVALID, "duplicate_key"),
    "unknown_tool": (EventKind.UNKNOWN_TOOL, "unknown_tool"),
}
"""Kinds whose advice names places or tools: kind and type of error of their groups."""


def _of_kind(events: QuerySet[Event], kind: str) -> QuerySet[Event]:
    if kind in INVALID:
        return events.filter(parse_error_type=kind.replace(UNSAID, "other"))
    if kind not in CALL_ERRORS:
        return events.filter(kind=kind)
    failed = events.filter(kind=EventKind.PROVIDER_ERROR)
    if kind != OTHER_CALL:
        return failed.filter(call_error_type=kind.removeprefix("call_"))
    named = [one.removeprefix("call_") for one in CALL_ERRORS if one != OTHER_CALL]
    return failed.filter(Q(call_error_type=None) | ~Q(call_error_type__in=named))


def _failed_calls(
    project_id: int, window: TimeWindow, terms: Sequence[Term], kind: str
) -> FailedCalls:
    rows = sum_rollups(project_id, Question(window, ("node",), COUNTED, terms))
    totals = [count_calls(row[1:]) for row in rows]
    return FailedCalls(
        sum(one.failures.get(kind, 0) for one in totals), sum(one.calls for one in totals)
    )


def _earlier_places(
    project_id: int, window: TimeWindow, terms: Sequence[Term], kind: str
) -> Mapping[Place, int]:
    segments = list(enumerate(window.segments))
    counted = "\nUNION ALL\n".join(
        _GROUPS.format(grain=segment.grain, place=place) for place, segment in segments
    )
    text = statement("earlier_failures").replace("<<counted>>", counted)
    asked: dict[str, object] = {"project": project_id, **ask_terms(terms)}
    asked["kind"], asked["error_type"] = PLACED[kind]
    for place, segment in segments:
        asked[f"since_{place}"], asked[f"until_{place}"] = segment.since, segment.until
    rows = fetch(text.replace("<<terms>>", write_terms(terms, {"series": "series"})), asked)
    return {(pointer, detail): seen for pointer, detail, seen in rows}


_GROUPS = """    SELECT group_id, series_id, seen FROM diagnostics_group_{grain}
    WHERE project_id = %(project)s AND bucket >= %(since_{place})s AND bucket < %(until_{place})s"""


def seen_in(event: Event, payload: EventPayload | None) -> FailureEvidence:
    """Return what a failure says of its cause; None: its details are gone."""
    told = FailureEvidence(
        event.output_tokens,
        call_error=event.call_error_type,
        reasoning_tokens=event.reasoning_tokens,
    )
    if payload is None:
        return told
    return replace(
        told,
        max_output_tokens=payload.max_output_tokens,
        tool=payload.tool,
        attributes=payload.attributes,
        errors=payload.validation_errors,
    )


NEARBY = timedelta(hours=1)


def observed_near(
    project_id: int, touched: Collection[SeriesKey], low: datetime, high: datetime
) -> ObservedChange | None:
    """Return what changed of who answers the series that are hit, about when it began.

    The first of several: what follows comes with it.
    """
    asked = {(who.environment, who.provider, who.model) for who in touched}
    for row in observed_changes(project_id, low - NEARBY, high + NEARBY).reverse():
        if (row.environment, row.provider, row.model) in asked:
            return ObservedChange(ObservedKind(row.kind), row.previous or "", row.version, row.at)
    return None


def last_change(project_id: int, until: datetime) -> datetime | None:
    """Return the time of the latest deploy before a time."""
    return reported_deploys(project_id, until=until).values_list("at", flat=True).first()
