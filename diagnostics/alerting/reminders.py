"""Telling again of incidents that stay open: reminders, escalation, and the daily check."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Count, Max, Q

from diagnostics import clock
from diagnostics.alerting.incident_models import Incident, Transition
from diagnostics.alerting.incident_rows import is_incident_silenced
from diagnostics.alerting.notification_facts import Facts
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.notification_models import NotificationReason as Reason
from diagnostics.alerting.notification_rows import (
    Notice,
    channels_of,
    project_channels,
    queue_alone,
    quiet_hours,
    write_rows,
)
from diagnostics.alerting.routing import QUIET_HOURS
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.figures import duration
from diagnostics.store.deadlines import try_work

SECONDS = 5.0
LONGEST = timedelta(days=7)
"""An incident that is open for longer is told no more."""


@dataclass(frozen=True, slots=True)
class RemindedIncident:
    """An incident that goes on: when it fired, who has it, what a channel has heard.

    `told_at` is the latest notification of any kind; `missed_at` one that quiet hours
    held back; `rounds` counts those sent again.
    """

    fired_at: datetime
    acknowledged: bool
    told_at: datetime | None
    missed_at: datetime | None = None
    rounds: int = 0


def is_due_again(case: RemindedIncident, every: timedelta | None, now: datetime) -> bool:
    """Whether a channel is notified again.

    Never once somebody has acknowledged. What was missed in quiet hours is told when they
    are over; apart from that every so often, where the channel wants it.
    """
    if case.acknowledged or now - case.fired_at > LONGEST:
        return False
    if case.missed_at and (case.told_at is None or case.told_at < case.missed_at):
        return True
    return bool(every and case.told_at and now - case.told_at >= every)


def is_to_escalate(case: RemindedIncident, after: timedelta | None, now: datetime) -> bool:
    """Whether the next channel is notified, since nobody has acknowledged."""
    if case.acknowledged or after is None:
        return False
    return after <= now - case.fired_at <= LONGEST


State = Notification.State
CANARY_EVERY = timedelta(hours=24)
QUIET = Q(state=State.SUPPRESSED, why__startswith=QUIET_HOURS)
HEARD = Q(state__in=[State.QUEUED, State.SENT, State.FAILED, State.DIGESTED])


def remind_all() -> int:
    """Tell again what is due of every open incident; returns how many rows were written."""
    now = clock.now()
    rows = Incident.objects.filter(
        state=Incident.State.OPEN, is_backfilled=False, fired_at__gt=now - LONGEST
    )
    open_ones = list(rows.select_related("project").order_by("pk"))
    heard = _heard(open_ones)
    return sum(
        try_work("reminders", one.project_id, partial(_remind, one, heard[one.pk], now), SECONDS)
        for one in open_ones
    )


def send_canaries() -> int:
    """Queue the daily check of every channel that has asked for one."""
    now = clock.now()
    day = Q(reason=Reason.CANARY, created_at__gt=now - CANARY_EVERY)
    recent = Notification.objects.filter(day).values("channel")
    wanting = Channel.objects.filter(has_canary=True, enabled=True)
    due, queued = wanting.exclude(pk__in=recent), 0
    for channel in due.select_related("project"):
        note = "No alert: this channel receives one test message a day."
        facts = Facts(reason=Reason.CANARY, project=channel.project.name, at=now, note=note)
        with transaction.atomic():
            # Two workers do it once: who waits for the other looks again.
            list(wanting.select_for_update().filter(pk=channel.pk))
            if due.filter(pk=channel.pk).exists():
                queue_alone(channel, facts)
                queued += 1
    return queued


def _remind(incident: Incident, heard: Mapping[int, RemindedIncident], now: datetime) -> int:
    """Tell one incident again, in a transaction that holds it: two beats do it once."""
    fired = incident.transitions.filter(kind=Transition.Kind.FIRED).first()
    if fired is None or is_incident_silenced(incident, now):
        return 0
    rules = list(AlertRule.objects.filter(incident_slices__incident=incident).distinct())
    channels = channels_of(incident)
    cases = [(channel, heard.get(channel.pk) or _case(incident)) for channel in channels]
    again = [
        (channel, case)
        for channel, case in cases
        if _is_due(channel, case, rules, now, was_silenced=fired.is_silenced)
    ]
    further = _further(incident, channels, rules, now)
    if not again and not further:
        return 0
    with transaction.atomic():
        held = Incident.objects.select_for_update().filter(
            pk=incident.pk, state=Incident.State.OPEN
        )
        if not held.exists():
            return 0
        written = sum(
            len(_notify(incident, fired, Reason.REMINDER, [channel], now, case.rounds + 1))
            for channel, case in again
        )
        return written + len(_notify(incident, fired, Reason.ESCALATED, further, now, 0))


def _notify(
    incident: Incident,
    fired: Transition,
    reason: Reason,
    channels: list[Channel],
    now: datetime,
    number: int,
) -> list[Notification]:
    note = f"It fired {duration(now - incident.fired_at)} ago."
    if fired.is_silenced and number == 1:
        note = f"{note} A silence held it back until now."
    notice = Notice(incident, fired, reason, incident.severity, now, round=number, note=note)
    return write_rows(notice, channels)


def _is_due(
    channel: Channel,
    case: RemindedIncident,
    rules: Iterable[AlertRule],
    now: datetime,
    *,
    was_silenced: bool,
) -> bool:
    if _is_resting(channel, now):
        return False
    is_unheard = was_silenced and case.told_at is None and not case.rounds
    return is_unheard or is_due_again(case, _every(channel, rules), now)


def _every(channel: Channel, rules: Iterable[AlertRule]) -> timedelta | None:
    """Return how often: what a rule says wins over the channel."""
    intervals = [rule.renotify_seconds for rule in rules if rule.renotify_seconds]
    if intervals:
        return timedelta(seconds=min(intervals))
    minutes = channel.renotify_minutes
    return timedelta(minutes=minutes) if minutes else None


def _further(
    incident: Incident, channels: Iterable[Channel], rules: Iterable[AlertRule], now: datetime
) -> list[Channel]:
    """Return the channels that it goes on to and that have not been told so yet."""
    case = _case(incident)
    wanted: set[int] = set()
    for rule in rules:
        after = rule.escalate_seconds
        if after and is_to_escalate(case, timedelta(seconds=after), now):
            wanted.update(rule.escalation)
    for channel in channels:
        minutes, then = channel.escalate_after_minutes, channel.escalate_to_id
        if minutes and then and is_to_escalate(case, timedelta(minutes=minutes), now):
            wanted.add(then)
    if not wanted:
        return []
    rows = incident.notifications.filter(reason=Reason.ESCALATED)
    already = set(rows.values_list("channel_id", flat=True))
    further = project_channels(incident.project_id, wanted - already)
    # It goes on when quiet hours are over: it is written once.
    return [channel for channel in further if not _is_resting(channel, now)]


def _is_resting(channel: Channel, now: datetime) -> bool:
    quiet = quiet_hours(channel)
    return quiet is not None and quiet.cover(now)


def _case(
    incident: Incident,
    told_at: datetime | None = None,
    missed_at: datetime | None = None,
    rounds: int = 0,
) -> RemindedIncident:
    is_acknowledged = incident.acknowledged_at is not None
    return RemindedIncident(incident.fired_at, is_acknowledged, told_at, missed_at, rounds)


def _heard(incidents: Iterable[Incident]) -> Mapping[int, Mapping[int, RemindedIncident]]:
    """Read what every channel has heard of every one of these, in one statement."""
    by_id: dict[int | None, Incident] = {one.pk: one for one in incidents}
    rows = (
        Notification.objects.filter(incident__in=list(by_id))
        .values_list("incident_id", "channel_id")
        .annotate(
            told=Max("created_at", filter=HEARD),
            missed=Max("created_at", filter=QUIET),
            rounds=Count("pk", filter=Q(reason=Reason.REMINDER)),
        )
        .order_by()
    )
    heard: dict[int, dict[int, RemindedIncident]] = defaultdict(dict)
    for incident, channel, *history in rows:
        heard[by_id[incident].pk][channel] = _case(by_id[incident], *history)
    return heard
