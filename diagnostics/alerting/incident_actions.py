"""What people do about incidents and rules: each change with its note and audit entry.

Incidents of other projects are not found: callers ask `incident_of`. `by` may be no user: a key,
or whom a signed link was sent to. The audit log names it; rows refer to users only.
"""

from collections.abc import Iterable
from datetime import datetime
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.db import transaction
from django.shortcuts import get_object_or_404

from diagnostics import clock
from diagnostics.accounts.audit_log import Actor, note
from diagnostics.alerting.counts import lock_alerts
from diagnostics.alerting.incident_models import Incident, IncidentNote, IncidentSlice, Transition
from diagnostics.alerting.incident_rows import clear_slices, close, record_transition
from diagnostics.alerting.rule_models import AlertRule, AlertState, Silence
from diagnostics.alerting.rules import SILENCED_BY, check_filter
from diagnostics.alerting.saved_states import standing_of
from diagnostics.alerting.states import AlertPhase, SliceStatus, acknowledged, resolved, time_of
from diagnostics.redaction.redactor import redact

LONGEST_TEXT = 10_000
LONGEST_REASON = 500
LONGEST_URL = 500
Kind = IncidentNote.Kind


class IncidentError(ValueError):
    """this cannot be done to the incident"""


def incident_of(project_id: int, incident_id: int) -> Incident:
    """Return an incident of a project; Http404 for any other."""
    rows = Incident.objects.select_related("assignee", "acknowledged_by", "resolved_by")
    return get_object_or_404(rows, project_id=project_id, pk=incident_id)


@transaction.atomic
def acknowledge(incident: Incident, by: Actor) -> bool:
    """Say that somebody is at it; False when somebody is already, or it is over."""
    lock_alerts(incident.project_id)
    now, user = clock.now(), _user(by)
    rows = Incident.objects.filter(pk=incident.pk, state=Incident.State.OPEN)
    if not rows.update(
        state=Incident.State.ACKNOWLEDGED, acknowledged_at=now, acknowledged_by=user
    ):
        return False
    incident.refresh_from_db()
    for row in _open_states(incident):
        _save_status(row, acknowledged(standing_of(row)))
    record_transition(incident, Transition.Kind.ACKNOWLEDGED, now, by=user.pk if user else None)
    note(incident.project_id, by, "incident.acknowledged", _named(incident))
    return True


@transaction.atomic
def resolve(
    incident: Incident, by: Actor, cause: str = Incident.Cause.OTHER, text: str = ""
) -> bool:
    """End an incident by hand, with its cause; False when it is over already.

    Its slices stay quiet until their detectors are, at most for a day. An incident that
    has ended by itself can be given its cause afterwards (also False).
    """
    if cause not in Incident.Cause.values:
        raise IncidentError(f"one of {', '.join(Incident.Cause.values)}")
    lock_alerts(incident.project_id)
    incident.refresh_from_db()
    now, user = clock.now(), _user(by)
    incident.resolution_cause, incident.resolved_by = cause, user
    was_open = incident.cleared_at is None
    if was_open:
        for row in _open_states(incident):
            _save_status(row, resolved(now.timestamp(), standing_of(row)))
        incident.slices.filter(cleared_at=None).update(cleared_at=now)
        close(incident, Transition.Kind.RESOLVED, now, user.pk if user else None)
    incident.save(update_fields=["resolution_cause", "resolved_by"])
    if text.strip():
        _note(incident, Kind.COMMENT, by, text)
    note(incident.project_id, by, "incident.resolved", _named(incident), {"cause": cause})
    return was_open


@transaction.atomic
def comment(incident: Incident, by: Actor, text: str) -> bool:
    """Add a comment to the timeline, redacted; False without a text."""
    if not text.strip():
        return False
    _note(incident, Kind.COMMENT, by, text)
    note(incident.project_id, by, "incident.commented", _named(incident))
    return True


@transaction.atomic
def assign(incident: Incident, by: Actor, to: User | None) -> None:
    """Assign an incident to a member of its project, or to nobody; IncidentError."""
    if to and not to.memberships.filter(project_id=incident.project_id).exists():
        raise IncidentError("not a member of this project")
    incident.assignee = to
    incident.save(update_fields=["assignee"])
    name = to.get_username() if to else "nobody"
    _note(incident, Kind.ASSIGNED, by, name)
    note(incident.project_id, by, "incident.assigned", _named(incident), {"to": name})


@transaction.atomic
def link(incident: Incident, by: Actor, url: str) -> None:
    """Link an incident to an issue in a tracker; empty: no more. IncidentError."""
    kept = redact(url.strip(), LONGEST_URL)
    if kept and (urlsplit(kept).scheme not in ("http", "https") or kept != url.strip()):
        raise IncidentError("an address that starts with http:// or https://")
    incident.tracker_url = kept
    incident.save(update_fields=["tracker_url"])
    _note(incident, Kind.LINKED, by, kept)
    note(incident.project_id, by, "incident.linked", _named(incident))


@transaction.atomic
def silence(
    project_id: int,
    by: Actor,
    until: datetime,
    *,
    rule: AlertRule | None = None,
    text: str = "",
    reason: str = "",
    starts_at: datetime | None = None,
) -> Silence:
    """Keep what `text` (a filter) covers quiet until a time. FilterError, IncidentError."""
    begin = starts_at or clock.now()
    if until <= begin:
        raise IncidentError("a silence must end after it starts")
    row = Silence.objects.create(
        project_id=project_id,
        rule=rule,
        filter=check_filter(text, SILENCED_BY),
        starts_at=begin,
        ends_at=until,
        reason=redact(reason.strip(), LONGEST_REASON),
        created_by=_user(by),
    )
    details = {"until": until.isoformat(), "rule": rule.name if rule else None}
    note(project_id, by, "silence.created", row.filter or "everything", details)
    return row


@transaction.atomic
def silence_incident(incident: Incident, by: Actor, until: datetime, reason: str = "") -> Silence:
    rules: list[AlertRule | None] = [*incident.silenced_rules] or [None]
    row, *_ = [
        silence(incident.project_id, by, until, rule=rule, text=incident.filter, reason=reason)
        for rule in rules
    ]
    _note(incident, Kind.SILENCED, by, f"until {until:%Y-%m-%d %H:%M} UTC")
    return row


@transaction.atomic
def end_silence(row: Silence, by: Actor) -> bool:
    """End a silence now; False when it is over."""
    now = clock.now()
    if row.ends_at <= now:
        return False
    row.starts_at, row.ends_at = min(row.starts_at, now), now
    row.save(update_fields=["starts_at", "ends_at"])
    note(row.project_id, by, "silence.ended", row.filter or "everything")
    return True


@transaction.atomic
def archive_rule(row: AlertRule, by: Actor) -> None:
    """Delete a rule: what it fires for ends, what it found stays."""
    lock_alerts(row.project_id)
    row.archived_at, row.is_enabled = clock.now(), False
    row.save(update_fields=["archived_at", "is_enabled"])
    end_alerts(row)
    note(row.project_id, by, "alert_rule.deleted", row.name)


@transaction.atomic
def end_alerts(rule: AlertRule) -> None:
    """End what a rule fires for that nobody evaluates any more."""
    lock_alerts(rule.project_id)
    now = clock.now()
    slices = IncidentSlice.objects.filter(rule=rule, cleared_at=None)
    states = list(slices.values_list("state_id", flat=True))
    AlertState.objects.filter(pk__in=states).update(state=AlertPhase.RESOLVED, since=now)
    clear_slices(dict.fromkeys(states, False), now)


def _open_states(incident: Incident) -> Iterable[AlertState]:
    return AlertState.objects.filter(
        incidents__incident=incident, incidents__cleared_at=None
    ).defer("memory")


def _save_status(row: AlertState, standing: SliceStatus) -> None:
    saved_state = {**row.detector_state, "was": standing.was.value, "is_held": standing.is_held}
    AlertState.objects.filter(pk=row.pk).update(
        state=standing.state.value, since=time_of(standing.since), detector_state=saved_state
    )


def _note(incident: Incident, kind: str, by: Actor, text: str) -> None:
    kept = redact(text.strip(), LONGEST_TEXT)
    IncidentNote.objects.create(
        incident=incident, kind=kind, by=_user(by), text=kept, at=clock.now()
    )


def _user(by: Actor) -> User | None:
    return by if isinstance(by, User) else None


def _named(incident: Incident) -> str:
    return f"#{incident.pk} {incident.title}"
