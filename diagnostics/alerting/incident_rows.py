"""Incidents as slices fire and clear: rows and notifications of one transaction."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from diagnostics.alerting.attribution import (
    JOINS,
    UNCLEAR,
    Attribution,
    VerdictCache,
    find_incident,
    is_back,
)
from diagnostics.alerting.incident_models import NAMELESS, Incident, IncidentSlice, Transition
from diagnostics.alerting.notification_rows import notify
from diagnostics.alerting.rule_models import AlertRule, Silence, active_silences, kinds_of
from diagnostics.alerting.rules import filter_of
from diagnostics.alerting.saved_states import SliceEvaluation
from diagnostics.alerting.states import rank
from diagnostics.alerting.wording import found_words, name_slices, slice_words, widest_of
from diagnostics.figures import listed
from diagnostics.verdict.cells import LIMITED
from diagnostics.verdict.verdicts import StoredVerdict
from diagnostics.verdict.wording import NO_CAUSE, Sentence

Kind = Transition.Kind
RESULT = ("k", "n", "value", "bound", "baseline")
"""What an evaluation found, as a slice of an incident keeps it."""


def _is_covered(
    silences: Sequence[Silence], at: datetime, evaluation: SliceEvaluation, verdict: StoredVerdict
) -> bool:
    rule, kinds = evaluation.rule, kinds_of(evaluation.rule.filter, verdict.risen)
    return any(silence.mutes(at, rule.id, evaluation.values, kinds) for silence in silences)


def raise_slices(
    project_id: int, firing: Sequence[SliceEvaluation], at: datetime, now: datetime, *, past: bool
) -> None:
    """Open incidents for slices that fire, or let them join; `past`: nobody is told.

    A slice joins the open incident of its cause whichever way it was found. One found in
    the past that fires now is told of like any other.
    """
    if not firing:
        return
    verdicts = VerdictCache(project_id, at, now)
    silences = [] if past else active_silences(project_id, at)
    rows = Incident.objects.filter(project_id=project_id, cleared_at=None)
    ordered = rows.prefetch_related("slices").order_by("pk")
    known = {row.pk: row for row in ordered if not past or row.onset <= at}
    for incident in known.values():
        if at - incident.fired_at <= JOINS:
            slices = list(incident.slices.all())
            if incident.cause in UNCLEAR and slices:
                # What a young incident comes from may not have been known a minute ago.
                attribute_to(incident, verdicts.attribute(*(row.slice for row in slices))[0])
                incident.save(update_fields=["cause", "cause_value"])
    raised: dict[int, list[tuple[SliceEvaluation, bool]]] = defaultdict(list)
    before = set(known)
    for evaluation in firing:
        attribution, verdict = verdicts.attribute(evaluation.values)
        joined = find_incident(attribution, at, known.values())
        if (
            joined is None
            and not past
            and (back := _reopen(evaluation, attribution, verdict, at, silences))
        ):
            known[back.pk] = back
            before.add(back.pk)
            continue
        if joined is None:
            joined = _open(project_id, evaluation, attribution, verdict, at, is_past=past)
            known[joined.pk] = joined
        is_covered = _is_covered(silences, at, evaluation, verdict)
        raised[joined.pk].append((evaluation, is_covered))
    for pk, evaluations in raised.items():
        incident = known[pk]
        if incident.is_backfilled and not past:
            _take_over(incident, at)
        _add(incident, evaluations, at, is_new=pk not in before, is_past=past)


def _take_over(incident: Incident, at: datetime) -> None:
    """Make an incident of the past one that fires now: nobody was told of it."""
    incident.is_backfilled, incident.fired_at = False, at
    incident.save(update_fields=["is_backfilled", "fired_at"])
    incident.transitions.filter(kind=Kind.FIRED).delete()
    record_transition(incident, Kind.FIRED, at, is_silenced=incident.is_silenced(at))


def _reopen(
    evaluation: SliceEvaluation,
    attribution: Attribution,
    verdict: StoredVerdict,
    at: datetime,
    silences: Sequence[Silence],
) -> Incident | None:
    """Go on with the incident that a slice was in, where it ended by itself a moment ago."""
    ended = IncidentSlice.objects.filter(
        state_id=evaluation.row.pk,
        rule_version=evaluation.rule.version,
        incident__state=Incident.State.RESOLVED,
        incident__resolution_cause=None,
        incident__is_backfilled=False,
    )
    last = ended.select_related("incident").order_by("-incident__cleared_at").first()
    if last is None or not is_back(attribution, at, last.incident):
        return None
    incident = last.incident
    last.cleared_at = None
    last.save(update_fields=["cleared_at"])
    is_taken = incident.acknowledged_at is not None
    incident.state = Incident.State.ACKNOWLEDGED if is_taken else Incident.State.OPEN
    incident.cleared_at, incident.verdict_now, incident.verdict_at = None, verdict.as_json(), at
    attribute_to(incident, attribution)
    incident.save()
    is_covered = _is_covered(silences, at, evaluation, verdict)
    record_transition(incident, Kind.REOPENED, at, of=last, is_silenced=is_covered)
    return incident


def clear_slices(states: Mapping[int, bool], at: datetime) -> None:
    """End the open slices of these states; an incident ends with its last one.

    A state is True when nothing got better: its level has become the usual one.
    """
    rows = IncidentSlice.objects.filter(state_id__in=list(states), cleared_at=None)
    open_slices = list(rows.select_related("incident").order_by("pk"))
    for row in open_slices:
        row.cleared_at = at
    IncidentSlice.objects.bulk_update(open_slices, ["cleared_at"])
    for incident in {row.incident_id: row.incident for row in open_slices}.values():
        cleared = [row for row in open_slices if row.incident_id == incident.pk]
        if all(states[row.state_id] for row in cleared):
            incident.resolution_cause = Incident.Cause.NEW_USUAL_LEVEL
        for row in cleared:
            record_transition(incident, Kind.SLICE_CLEARED, at, of=row)
        if incident.cleared_at is None and not incident.slices.filter(cleared_at=None).exists():
            close(incident, Kind.CLEARED, at)


def close(incident: Incident, kind: str, at: datetime, by: int | None = None) -> None:
    """End an incident and tell of it; its slices are ended already."""
    incident.state = Incident.State.RESOLVED
    incident.cleared_at = at
    incident.save(update_fields=["state", "cleared_at", "resolution_cause", "resolved_by"])
    record_transition(incident, kind, at, by=by, is_silenced=incident.is_silenced(at))


def record_transition(
    incident: Incident,
    kind: str,
    at: datetime,
    *,
    by: int | None = None,
    of: IncidentSlice | None = None,
    is_silenced: bool = False,
) -> None:
    transition = Transition.objects.create(
        incident=incident,
        kind=kind,
        at=at,
        by_id=by,
        slice=of,
        severity=incident.severity,
        is_silenced=is_silenced,
        processed_at=at,
    )
    notify(incident, transition)


def attribute_to(incident: Incident, attribution: Attribution) -> None:
    """Name what an incident comes from, as its verdict does; the row is saved by the caller.

    A verdict that names nothing takes no name away.
    """
    if attribution.cause not in NAMELESS:
        incident.cause, incident.cause_value = attribution.cause, attribution.value


def _open(
    project_id: int,
    first: SliceEvaluation,
    attribution: Attribution,
    verdict: StoredVerdict,
    at: datetime,
    *,
    is_past: bool,
) -> Incident:
    if verdict.since is None:
        # It names nothing: the sentence is of what the rule found.
        name = AlertRule.objects.values_list("name", flat=True).get(pk=first.rule.id)
        rest = f": {slice_words(first.values)}, {found_words(first.rule.signal, first.result)}."
        is_old = first.onset.date() != at.date()
        sentence = Sentence(name, first.onset, rest, (NO_CAUSE,), is_old)
        verdict = verdict.model_copy(update={"told": sentence})
    stored = verdict.as_json()
    return Incident.objects.create(
        project_id=project_id,
        title=slice_words(first.values)[:300],
        severity=first.rule.severity,
        onset=verdict.since or first.onset,
        fired_at=at,
        cause=attribution.cause,
        cause_value=attribution.value,
        verdict=stored,
        verdict_now=stored,
        verdict_at=at,
        is_backfilled=is_past,
    )


def _add(
    incident: Incident,
    slices: Sequence[tuple[SliceEvaluation, bool]],
    at: datetime,
    *,
    is_new: bool,
    is_past: bool,
) -> None:
    """Put slices into their incident; tell once that it fired, joined or got worse."""
    rows = [
        IncidentSlice(
            incident=incident,
            state_id=evaluation.row.pk,
            rule_id=evaluation.rule.id,
            rule_version=evaluation.rule.version,
            severity=evaluation.rule.severity,
            slice=dict(evaluation.values),
            onset=evaluation.onset,
            fired_at=at,
            **{name: getattr(evaluation.result, name) for name in RESULT},
        )
        for evaluation, _ in slices
    ]
    IncidentSlice.objects.bulk_create(rows)
    before = incident.severity
    incident.severity = max(before, *(row.severity for row in rows), key=rank)
    _describe(incident, rows)
    silenced = all(is_covered for _, is_covered in slices)
    if is_new:
        record_transition(incident, Kind.FIRED, at, is_silenced=silenced)
        return
    for row in rows:
        record_transition(incident, Kind.JOINED, at, of=row, is_silenced=silenced)
    if rank(incident.severity) > rank(before) and not is_past:
        record_transition(incident, Kind.WORSENED, at, is_silenced=silenced)


def _describe(incident: Incident, new: Sequence[IncidentSlice]) -> None:
    """Write name, onset and affected calls anew: a slice more may widen them."""
    known = IncidentSlice.objects.filter(incident=incident).order_by("pk")
    slices = [row.slice for row in known]
    # Its slices name all else better than the provider whose outage it is.
    is_outage = incident.cause == "provider_outage" and incident.cause_value
    named = listed(widest_of(name_slices(slices)), 2)
    verdict = StoredVerdict.model_validate(incident.verdict_now)
    fault = "limit" if verdict.top_kind == LIMITED else "outage"
    incident.title = (f"{incident.cause_value}: {fault}" if is_outage else named)[:300]
    if verdict.since is None:
        incident.onset = min(incident.onset, *(row.onset for row in new))
    incident.filter = filter_of(slices)
    incident.save(update_fields=["title", "onset", "filter", "severity"])
