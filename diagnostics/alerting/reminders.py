"""Telling again of incidents that stay open: reminders, escalation, and the daily check."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Count, Max, Min, Q

from diagnostics import clock
from diagnostics.alerting import notification_rows
from diagnostics.alerting.incident_models import Incident, Transition
from diagnostics.alerting.notification_facts import Facts
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.notification_models import NotificationReason as Reason
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.figures import duration
from diagnostics.store.deadlines import try_work

SECONDS = 5.0
LONGEST = timedelta(days=7)
"""An incident that is open for longer is told no more."""


@dataclass(frozen=True, slots=True)
class ChannelHistory:
    """When a channel was notified of an open incident last, and what of it was held back.

    `last_at` is the latest notification of any kind, `told_at` the latest that was not held
    back, `missed_at` the latest that quiet hours or a silence did; `rounds` counts reminders.
    """

    last_at: datetime | None = None
    told_at: datetime | None = None
    missed_at: datetime | None = None
    rounds: int = 0


def is_due_again(heard: ChannelHistory, every: timedelta | None, now: datetime) -> bool:
    """Whether a channel is notified again of what nobody has acknowledged.

    What was missed in quiet hours or under a silence is told when they are over; apart from
    that every so often, where the channel wants it.
    """
    if heard.last_at is None or heard.missed_at == heard.last_at:
        return heard.last_at is not None
    return bool(every and heard.told_at and now - heard.last_at >= every)


State = Notification.State
CANARY_EVERY = timedelta(hours=24)
MISSED = Q(state=State.SUPPRESSED) & (
    Q(why__startswith=notification_rows.QUIET_HOURS) | Q(why=notification_rows.SILENCED)
)


def remind_all() -> int:
    """Tell again what is due of every open row; returns how many rows were written."""
    now = clock.now()
    rows = Incident.objects.filter(
        state=Incident.State.OPEN, is_backfilled=False, fired_at__gt=now - LONGEST
    )
    open_ones = list(rows.select_related("project").order_by("pk"))
    heard = _histories(open_ones)
    return sum(
        try_work("reminders", row.project_id, partial(_remind, row, heard[row.pk], now), SECONDS)
        for row in open_ones
    )


def send_canaries() -> int:
    """Queue the daily check of every channel that has asked for one."""
    now = clock.now()
    day = Q(reason=Reason.CANARY, created_at__gt=now - CANARY_EVERY)
    recent = Notification.objects.filter(day).values("channel")
    wanting = Channel.objects.filter(has_canary=True, enabled=True)
    due, queued = wanting.exclude(pk__in=recent), 0
    awake = (
        channel for channel in due.select_related("project") if not channel.is_in_quiet_hours(now)
    )
    for channel in awake:
        note = "No alert: this channel receives one test message a day."
        facts = Facts(reason=Reason.CANARY, project=channel.project.name, at=now, note=note)
        with transaction.atomic():
            # Two workers do it once: who waits for the other looks again.
            list(wanting.select_for_update().filter(pk=channel.pk))
            if due.filter(pk=channel.pk).exists():
                notification_rows.queue_alone(channel, facts)
                queued += 1
    return queued


def _remind(incident: Incident, heard: Mapping[int, ChannelHistory], now: datetime) -> int:
    """Tell one incident again, in a transaction that holds it: two beats do it once."""
    fired = incident.transitions.filter(kind=Transition.Kind.FIRED).first()
    if fired is None or incident.is_silenced(now):
        return 0
    rules = list(AlertRule.objects.filter(incident_slices__incident=incident).distinct())
    channels = notification_rows.channels_of(incident)
    further = _escalation_channels(fired, channels, rules, now)
    again = [
        channel
        for channel in channels
        if channel not in further
        and (history := heard.get(channel.pk))
        and is_due_again(history, _every(channel, rules), now)
        and not channel.is_in_quiet_hours(now)
    ]
    if not again and not further:
        return 0
    with transaction.atomic():
        held = Incident.objects.select_for_update().filter(
            pk=incident.pk, state=Incident.State.OPEN
        )
        if not held.exists():
            return 0
        notice = notification_rows.Notice(
            *(incident, fired, Reason.ESCALATED, incident.severity, now),
            note=f"It fired {duration(now - incident.fired_at)} ago.",
        )
        written = 0
        for channel in again:
            number, note = heard[channel.pk].rounds + 1, notice.note
            if fired.is_silenced and number == 1:
                note += " A silence held it back until now."
            reminder = replace(notice, reason=Reason.REMINDER, round=number, note=note)
            written += len(notification_rows.write_rows(reminder, [channel]))
        return written + len(notification_rows.write_rows(notice, further))


def _every(channel: Channel, rules: Iterable[AlertRule]) -> timedelta | None:
    """Return how often: what a rule says wins over the channel."""
    intervals = [rule.renotify_seconds for rule in rules if rule.renotify_seconds]
    if intervals:
        return timedelta(seconds=min(intervals))
    minutes = channel.renotify_minutes
    return timedelta(minutes=minutes) if minutes else None


def _escalation_channels(
    fired: Transition, channels: Iterable[Channel], rules: Iterable[AlertRule], now: datetime
) -> list[Channel]:
    """Return the channels that it goes on to and that have not been told so yet."""
    incident = fired.incident
    # Nobody could acknowledge what had recovered, nor what a silence held back.
    back = incident.transitions.filter(kind=Transition.Kind.REOPENED).order_by("at").last()
    since = back.at if back else incident.fired_at
    if (back or fired).is_silenced:
        notified = incident.notifications.filter(~Q(state=State.SUPPRESSED), created_at__gte=since)
        since = notified.aggregate(first=Min("created_at"))["first"] or now
    wanted, seconds = set[int](), (now - since).total_seconds()
    for rule in rules:
        if rule.escalate_seconds and seconds >= rule.escalate_seconds:
            wanted.update(rule.escalation)
    for channel in channels:
        minutes, then = channel.escalate_after_minutes, channel.escalate_to_id
        if minutes and then and seconds >= minutes * 60:
            wanted.add(then)
    if not wanted:
        return []
    rows = incident.notifications.filter(reason=Reason.ESCALATED)
    already = set(rows.values_list("channel_id", flat=True))
    further = notification_rows.project_channels(incident.project_id, wanted - already)
    # It goes on when quiet hours are over: it is written once.
    return [channel for channel in further if not channel.is_in_quiet_hours(now)]


def _histories(incidents: Iterable[Incident]) -> Mapping[int, Mapping[int, ChannelHistory]]:
    """Read what every channel has heard of every one of these, in one statement."""
    rows = (
        Notification.objects.filter(incident__in=incidents)
        .values_list("incident_id", "channel_id")
        .annotate(
            last=Max("created_at"),
            told=Max("created_at", filter=~Q(state=State.SUPPRESSED)),
            missed=Max("created_at", filter=MISSED),
            rounds=Count("pk", filter=Q(reason=Reason.REMINDER)),
        )
        .order_by()
    )
    heard: dict[int, dict[int, ChannelHistory]] = defaultdict(dict)
    for incident, channel, *history in rows:
        heard[incident][channel] = ChannelHistory(*history)
    return heard
