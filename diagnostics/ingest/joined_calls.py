"""One call is one event, even if two instrumentations, or a span and a log record, report it.

Which span reported which event is kept for a day. A later report that knows more (the answer,
or an error of the client that read it) replaces a success that was stored before it; any other
adds nothing. Two spans report the same call:

1. One instrumentation reports a call twice only if one span is the other's parent: a method of a
   framework calls that of its base class, and both begin and end together; or a call was tried
   several times, all failed, and it ends with the last one. If the call around them succeeded,
   it began when the last of the failed ones below it had ended.
2. Both name the provider's response: it must be the same one, at the same time. The traces
   may differ.
3. Otherwise they are in one trace, or both failed in the same way for the same service and
   model, and begin and end together; or one is the other's parent, and both end together.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256
from math import inf
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from diagnostics import clock
from diagnostics.ingest.models import SpanCall
from diagnostics.ingest.otlp.drafts import CALL, DEFAULT_NODE, Draft, event_id
from diagnostics.ingest.otlp.telemetry import CallPlace, nanoseconds_of, time_of
from diagnostics.store.models import Event
from diagnostics.store.runs import OF_IDS, forget_batch
from diagnostics.store.sql import fetch, insert_rows
from failsoft.events import EventKind

KEEP = timedelta(days=1)
ANSWERED, FAILED = 2, 1
# Two instrumentations export their spans of one call within seconds.
TWINS = timedelta(minutes=1)
MOST_TWINS = 500
# The fields of a stored event that describe its call.
STORED_FIELDS = (
    *("correlation_id", "node", "cycle", "attempt", "provider", "model", "environment"),
    *("source", "release", "schema", "schema_version", "prompt_version", "finish_reason"),
    *("output_mode", "latency_ms", "input_tokens", "output_tokens", "reasoning_tokens"),
    *("served_model", "upstream", "system_fingerprint", "region", "credential"),
)
# At most this many calls with about the same start are compared with a span.
MOST_NEAR = 64
# Of advisory locks; each takes a place in memory that all of the server's transactions share.
LOCK_SPACE, MOST_LOCKED = 1_936_745_324, 256
MILLISECOND_NS = 1_000_000
# Spans of one call are nested, up to the difference of two clocks of one process.
SLACK_NS = 100 * MILLISECOND_NS
# The time one instrumentation takes before the other begins, and after it ends.
TOGETHER_NS = 250 * MILLISECOND_NS


def is_same_call(first: CallPlace, second: CallPlace) -> bool:
    if first.span_id == second.parent_id:
        first, second = second, first
    if first.scope == second.scope:
        return is_below(first, second) and _is_reported_by(first, second)
    if first.response_id is not None and second.response_id is not None:
        return first.response_id == second.response_id and _overlap(first, second)
    is_failure = first.failure is not None and first.failure == second.failure
    is_nested = is_below(first, second) and _is_reported_by(first, second)
    return (
        (first.trace_id == second.trace_id or is_failure)
        and _overlap(first, second)
        and (is_nested or distance_ns(first, second) < inf)
    )


def is_below(place: CallPlace, around: CallPlace) -> bool:
    return (place.trace_id, place.parent_id) == (around.trace_id, around.span_id)


def _is_reported_by(place: CallPlace, around: CallPlace) -> bool:
    """Whether a call is the last one of a span around it, which may have begun before."""
    is_last = abs(place.ended_ns - around.ended_ns) <= TOGETHER_NS
    if place.has_failed:
        return is_last and around.has_failed
    return is_last and (place.scope != around.scope or distance_ns(place, around) < inf)


def distance_ns(first: CallPlace, second: CallPlace) -> float:
    """Return how far apart two spans begin and end, in nanoseconds; infinite if too far."""
    begin, end = abs(first.started_ns - second.started_ns), abs(first.ended_ns - second.ended_ns)
    return begin + end if max(begin, end) <= TOGETHER_NS else inf


def _overlap(first: CallPlace, second: CallPlace) -> bool:
    begin, end = max(first.started_ns, second.started_ns), min(first.ended_ns, second.ended_ns)
    return begin <= end + SLACK_NS


@dataclass(slots=True)
class _Call:
    """A call as reported by spans of this request and by earlier ones."""

    draft: Draft
    index: int
    places: list[CallPlace]
    new: list[CallPlace]
    stored_id: UUID | None = None
    stored_weight: int = 0
    # Its event is known, or reported by another span already.
    is_done: bool = False


class _Calls:
    """Calls indexed by response, and by trace and start time, to compare few of them."""

    def __init__(self, known: Iterable[_Call]) -> None:
        self.all: list[_Call] = []
        self._by_key = defaultdict[object, list[_Call]](list)
        for call in known:
            self.add(call)

    def add(self, call: _Call) -> None:
        self.all.append(call)
        for place in call.places:
            self.place(call, place)

    def place(self, call: _Call, place: CallPlace) -> None:
        slot = place.started_ns // TOGETHER_NS
        self._by_key[place.trace_id, slot].append(call)
        self._by_key[place.trace_id, place.parent_id].append(call)
        if place.response_id is not None:
            self._by_key[place.response_id].append(call)
        if place.failure is not None:
            self._by_key[place.failure, slot].append(call)

    def nearest(self, place: CallPlace) -> _Call | None:
        """Return the call that a span also reports: the one closest in start and end."""
        candidates = [
            (min(distance_ns(other, place) for other in call.places), call)
            for call in self._candidates(place)
            # Of the same instrumentation if there are any.
            if any(
                is_same_call(other, place)
                for other in [it for it in call.places if it.scope == place.scope] or call.places
            )
        ]
        return min(candidates, key=lambda candidate: candidate[0])[1] if candidates else None

    def after_tries(self, draft: Draft, place: CallPlace) -> Draft:
        """Return a call without the failed tries of it, which are calls of their own."""
        ends = [
            other.ended_ns
            for call in self._by_key.get((place.trace_id, place.span_id), ())
            for other in call.places
            if other.has_failed and is_below(other, place) and other.ended_ns < place.ended_ns
        ]
        if not ends or place.has_failed or draft.place is None:
            return draft
        latency_ms = (place.ended_ns - max(ends)) // MILLISECOND_NS
        begun = draft.place._replace(started_ns=max(ends))
        return replace(draft, place=begun, fields={**draft.fields, "latency_ms": latency_ms})

    def _candidates(self, place: CallPlace) -> Iterator[_Call]:
        slot = place.started_ns // TOGETHER_NS
        yield from self._by_key.get(place.response_id, ())[-MOST_NEAR:]
        yield from self._by_key.get((place.trace_id, place.span_id), ())[-MOST_NEAR:]
        for near in (slot - 1, slot, slot + 1):
            yield from self._by_key.get((place.trace_id, near), ())[-MOST_NEAR:]
            if place.failure is not None:
                yield from self._by_key.get((place.failure, near), ())[-MOST_NEAR:]


def join_calls(project_id: int, drafts: Sequence[Draft]) -> tuple[dict[int, Draft], int]:
    """Join the spans of one request with each other and earlier ones, in a transaction.

    Return the remaining drafts by index, and how many spans reported a known call.
    """
    placed = [
        (index, draft, _with_keys(draft.place, draft))
        for index, draft in enumerate(drafts)
        if draft.place is not None
    ]
    places = [place for _, _, place in placed]
    rows = list[SpanCall]()
    if places:
        _lock_calls(project_id, places)
        responses = {place.response_id for place in places if place.response_id is not None}
        rows += reported_calls(project_id, {place.trace_id for place in places}, responses)
    twins = _failed_twins(project_id, [place for place in places if place.failure is not None])
    known = {row.pk: row for row in (*rows, *(row for row, _ in twins))}
    failures = {row.event_id: failure for row, failure in twins}
    calls = _Calls(_known_calls(known.values(), failures))
    joined, repeated = {n: draft for n, draft in enumerate(drafts) if draft.place is None}, 0
    row_of_span = {(row.trace_id, row.span_id): row for row in rows}
    # The tries of a call before the span around them.
    placed.sort(key=lambda each: -each[2].started_ns)
    for index, draft, place in placed:
        row = row_of_span.get((draft.trace_id, draft.span_id))
        if row is not None and row.is_joined:
            repeated += 1
        elif draft.kind is not None:
            joined[index] = draft
        elif row is not None:
            # As it was stored, so that the same span again is a duplicate.
            joined[index] = calls.after_tries(draft, place)
        elif (call := calls.nearest(place)) is not None:
            repeated += 1
            _merge_draft(call, calls.after_tries(draft, place), place, index)
            calls.place(call, place)
        else:
            calls.add(_Call(calls.after_tries(draft, place), index, [place], [place]))
    _replace_stored(project_id, calls.all)
    _keep(project_id, calls.all)
    new = {call.index: call.draft for call in calls.all if call.new and not call.is_done}
    return joined | new, repeated


def reported_calls(
    project_id: int, traces: Collection[str], responses: Collection[str | UUID]
) -> QuerySet[SpanCall]:
    """Return the spans of calls in these traces or with these responses, oldest first."""
    conditions = Q(trace_id__in=traces) | Q(response__in=responses)
    return SpanCall.objects.filter(conditions, project_id=project_id).order_by("pk")


def events_of_calls(project_id: int, rows: Iterable[SpanCall]) -> QuerySet[Event]:
    """Return the events of these spans; each has the end of its span, or of an earlier twin's."""
    # An event ahead of the clock has the time of its arrival.
    times = {row.event_id: min(row.ended_at, row.received_at) for row in rows}
    events = Event.objects.filter(project_id=project_id, event_id__in=list(times))
    return events.filter(occurred_at__gte=min(times.values()) - TWINS) if times else events.none()


def weight_of(draft: Draft) -> int:
    """Return how much a span knows of its answer: the text, an error or nothing."""
    if draft.answer.is_known or "parse_error_type" in draft.fields:
        return ANSWERED
    return FAILED if draft.is_error else 0


def forget_old_calls() -> int:
    return SpanCall.objects.filter(received_at__lt=clock.now() - KEEP).delete()[0]


def _lock_calls(project_id: int, places: Iterable[CallPlace]) -> None:
    """Wait for a transaction that joins the same calls: neither would see what the other adds."""
    names = {
        name for place in places for name in (place.trace_id, place.response_id, place.failure)
    }
    keys = {UUID(key_of(f"{project_id} {name}")) for name in names - {None}}
    # In one order, so that two never wait for each other.
    numbers = sorted(key.int % 2**31 for key in keys)[:MOST_LOCKED]
    text = "SELECT pg_advisory_xact_lock(%s, number) IS NULL FROM unnest(%s::int[]) AS number"
    fetch(text, [LOCK_SPACE, numbers])


def _failed_twins(project_id: int, places: Sequence[CallPlace]) -> list[tuple[SpanCall, str]]:
    """Return stored spans of the last minute that failed at the time of these, with their keys."""
    if not places:
        return []
    begin, end = (time_of(pick(place.started_ns for place in places)) for pick in (min, max))
    slack = timedelta(microseconds=TOGETHER_NS // 1000)
    rows = SpanCall.objects.filter(
        project_id=project_id,
        received_at__gte=clock.now() - TWINS,
        started_at__range=(begin - slack, end + slack),
        response__isnull=True,
        weight=FAILED,
    ).order_by("-pk")[:MOST_TWINS]
    twins = list(rows)
    events = Event.objects.filter(
        project_id=project_id,
        event_id__in=[row.event_id for row in twins],
        kind=EventKind.PROVIDER_ERROR,
    )
    failed = events.values_list("event_id", "source", "model", "call_error_type")
    keys = {event_id: _failure_key(*failure) for event_id, *failure in failed}
    return [(row, keys[row.event_id]) for row in twins if row.event_id in keys]


def _failure_key(*failure: str | None) -> str:
    return "\n".join(text or "" for text in failure)


def _known_calls(rows: Iterable[SpanCall], failures: Mapping[UUID, str]) -> Iterator[_Call]:
    events: dict[UUID, list[SpanCall]] = {}
    for row in rows:
        events.setdefault(row.event_id, []).append(row)
    for group in events.values():
        places = [_place_of(row, failures.get(row.event_id)) for row in group]
        draft = Draft("", "", CALL, None, {})
        weight = max(row.weight for row in group)
        yield _Call(draft, -1, places, [], group[0].event_id, weight, is_done=True)


def _merge_draft(call: _Call, draft: Draft, place: CallPlace, index: int) -> None:
    """Add another span to a call; the one that knows more wins, the other completes it."""
    call.places.append(place)
    call.new.append(place)
    if call.is_done:
        if weight_of(draft) > call.stored_weight:
            call.draft, call.index, call.is_done = draft, index, False
    elif weight_of(draft) > weight_of(call.draft):
        call.draft, call.index = completed(draft, call.draft.fields, call.draft.agent_node), index
    else:
        call.draft = completed(call.draft, draft.fields, draft.agent_node)


def completed(draft: Draft, other: dict[str, Any], agent_node: str = "") -> Draft:
    fields = {**other, **draft.fields}
    fields["attributes"] = {**other.get("attributes", {}), **draft.fields.get("attributes", {})}
    return replace(draft, fields=fields, agent_node=draft.agent_node or agent_node)


def _replace_stored(project_id: int, calls: Iterable[_Call]) -> None:
    """Delete stored successes that a new report replaces; other events stay."""
    for call in calls:
        if call.stored_id is None or call.is_done:
            continue
        fields = delete_stored(project_id, call.stored_id)
        if fields is None:
            call.is_done = True
        else:
            call.draft = replace(completed(call.draft, fields), stored_id=call.stored_id)


def delete_stored(project_id: int, stored_id: UUID) -> dict[str, Any] | None:
    """Delete a stored success and return its fields; None if it is no success.

    A default node is left out: one that is named, or inherited, replaces it.
    """
    events = Event.objects.filter(project_id=project_id, event_id=stored_id)
    event = events.filter(kind=EventKind.SUCCEEDED).first()
    if event is None:
        return None
    if not forget_batch(project_id, OF_IDS, [stored_id], with_identities=True):
        return None
    fields = {name: getattr(event, name) for name in STORED_FIELDS}
    fields["occurred_at"] = event.sent_time
    if fields["node"] == DEFAULT_NODE:
        del fields["node"]
    return {name: value for name, value in fields.items() if value is not None}


def _keep(project_id: int, calls: Iterable[_Call]) -> None:
    at, rows = clock.now(), list[dict[str, object]]()
    for call in calls:
        if not call.new:
            continue
        stored_id = call.stored_id or event_id(call.draft, project_id)
        weight = max(weight_of(call.draft), call.stored_weight)
        shared = {"project_id": project_id, "event_id": stored_id, "received_at": at}
        shared |= {"weight": weight, "is_joined": len(call.places) > 1}
        rows += [
            {
                **shared,
                "trace_id": place.trace_id,
                "span_id": place.span_id,
                "parent_id": place.parent_id,
                "scope": place.scope,
                "response": place.response_id,
                "started_at": time_of(place.started_ns),
                "ended_at": time_of(place.ended_ns),
            }
            for place in call.new
        ]
        if len(call.places) > len(call.new):
            known = SpanCall.objects.filter(project_id=project_id, event_id=stored_id)
            known.update(is_joined=True, weight=weight)
    insert_rows(SpanCall._meta.db_table, rows)


def _place_of(row: SpanCall, failure: str | None) -> CallPlace:
    return CallPlace(
        row.trace_id,
        row.span_id,
        row.parent_id,
        nanoseconds_of(row.started_at),
        nanoseconds_of(row.ended_at),
        str(row.scope),
        str(row.response) if row.response else None,
        failure=failure,
        has_failed=row.weight == FAILED,
    )


def _with_keys(place: CallPlace, draft: Draft) -> CallPlace:
    """Return the place of a span with keys for texts: they are compared and never shown."""
    has_failed = weight_of(draft) == FAILED
    is_failure = has_failed and place.response_id is None
    source, model = draft.fields.get("source"), draft.fields.get("model")
    failure = _failure_key(source, model, draft.error.kind) if is_failure and model else None
    response = key_of(place.response_id) if place.response_id is not None else None
    keyed = place._replace(scope=key_of(place.scope), response_id=response)
    return keyed._replace(failure=failure, has_failed=has_failed)


def key_of(text: str) -> str:
    """Return the key that a text of the sender's is compared by."""
    return str(UUID(bytes=sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]))
