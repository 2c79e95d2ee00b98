"""Notifications as rows, written in the transaction of what they tell of, with its facts.

A row a channel and transition; what is kept back is a row too, with its reason.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, urlencode

from django.db.models import Count, Max, Q
from django.urls import reverse

from diagnostics import clock
from diagnostics.alerting.incident_models import Incident, IncidentSlice, Transition
from diagnostics.alerting.notification_facts import Facts, SampleRun, digest_due
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.notification_models import NotificationReason as Reason
from diagnostics.alerting.notification_models import NotificationState as State
from diagnostics.alerting.signals import RATIOS, noun_of
from diagnostics.alerting.states import rank
from diagnostics.alerting.wording import slice_words, widest_of
from diagnostics.analysis.statistics import wilson_interval
from diagnostics.figures import ONE_LINE
from diagnostics.queries.series import latest_events
from diagnostics.redaction.redactor import redact_json
from diagnostics.selection.selection import read_selection
from diagnostics.store.outbox import enqueue
from diagnostics.verdict.cause import Cause
from diagnostics.verdict.wording import StoredRate
from failsoft.events import FAILURE_EVENT_KINDS
from failsoft.json_values import JSON

REASONS: Mapping[str, Reason] = {
    Transition.Kind.FIRED: Reason.FIRED,
    # Only to channels of its rule that know nothing of the incident yet.
    Transition.Kind.JOINED: Reason.FIRED,
    Transition.Kind.WORSENED: Reason.WORSENED,
    Transition.Kind.CLEARED: Reason.RECOVERED,
    Transition.Kind.RESOLVED: Reason.RECOVERED,
    Transition.Kind.REOPENED: Reason.REMINDER,
}
TASK = "diagnostics.tasks.deliver_due"
QUEUE = "notify"
HOUR = timedelta(hours=1)
# The runs of an alert, of these latest failures: runs end later than the calls that raise it.
SAMPLES, SAMPLED = 3, 30
MOST_SLICES = 10
SILENCED = "a silence covers it"
BY_HAND = "a person resolved it"
QUIET_HOURS = "quiet hours"
"""What is suppressed by them begins with this, and is sent when they are over."""
# Some addresses may have what was given up for others.
HEARD = Q(state=State.QUEUED) | Q(sent_at__isnull=False)


@dataclass(frozen=True, slots=True)
class Notice:
    """What to notify of, before it is decided who hears of it."""

    incident: Incident
    transition: Transition
    reason: Reason
    severity: str
    at: datetime
    held_by: str = ""
    round: int = 0
    note: str = ""


def notify(incident: Incident, transition: Transition) -> list[Notification]:
    """Write what every channel is notified of a transition; sent after commit.

    Must run in the transaction of the transition. A second call writes nothing new.
    """
    reason = REASONS.get(transition.kind)
    if reason is None or incident.is_backfilled:
        return []
    held_by = SILENCED if transition.is_silenced else ""
    if transition.kind == Transition.Kind.RESOLVED:
        held_by = BY_HAND
    notice = Notice(incident, transition, reason, transition.severity, clock.now(), held_by)
    channels = channels_of(incident, _notified_channels(incident))
    known = set[int]()
    if transition.kind in (Transition.Kind.JOINED, Transition.Kind.WORSENED):
        heard = incident.notifications.values_list("channel_id", flat=True)
        is_joined = transition.kind == Transition.Kind.JOINED
        # Who is told of a series that joined has been told the severity that it raised.
        known.update(heard if is_joined else heard.filter(transition__at=transition.at))
    return write_rows(notice, [channel for channel in channels if channel.pk not in known])


def write_rows(notice: Notice, channels: Sequence[Channel]) -> list[Notification]:
    """Write one row for each channel, by what it wants and has heard lately."""
    if not channels:
        return []
    facts = facts_of(notice)
    lately = Notification.objects.filter(
        HEARD, channel__in=channels, created_at__gt=notice.at - HOUR
    ).exclude(reason__in=[Reason.DIGEST, Reason.TEST, Reason.CANARY])
    sent = lately.order_by().values_list("channel_id").annotate(count=Count("pk"))
    counts = Counter(dict(sent))
    heard = _notified_channels(notice.incident)
    rows = [
        _row(notice, channel, facts, counts[channel.pk], heard.get(channel.pk))
        for channel in channels
    ]
    for row in rows:
        if row.state == State.DIGESTED:
            row.digest = _open_digest(row)
    Notification.objects.bulk_create(rows, ignore_conflicts=True)
    # What was there already is not written again.
    kept = Notification.objects.filter(key__in=[row.key for row in rows])
    written = list(kept.order_by("pk"))
    if any(row.state != State.SUPPRESSED for row in written):
        enqueue(TASK, {}, QUEUE, notice.incident.project_id)
    return written


def channels_of(incident: Incident, notified: Iterable[int] = ()) -> list[Channel]:
    """Return the channels of an incident: those its rules name, else all of the project.

    A channel that was deleted is not named any more; `notified` are channels to name as well.
    """
    rows = Channel.objects.filter(project_id=incident.project_id)
    kept = set(rows.values_list("pk", flat=True))
    routings = [kept & set(own) for own in incident.slices.values_list("rule__routing", flat=True)]
    # Without a slice its rule was deleted while it was open.
    named = set().union(*routings) if all(routings) else set()
    return project_channels(incident.project_id, named.union(notified) if named else None)


def project_channels(project_id: int, ids: Collection[int] | None = None) -> list[Channel]:
    rows = Channel.objects.filter(project_id=project_id, enabled=True).order_by("pk")
    return list(rows if ids is None else rows.filter(pk__in=ids))


def decide(
    notice: Notice, channel: Channel, sent_in_hour: int, alerts: int | None
) -> tuple[State, str]:
    """Return what becomes of a notification, and why unless it is queued.

    `alerts` is how often the channel was notified of the incident outside a digest; None: never.

    1. A recovery goes to the channels that were notified of the incident, and to no other; what
       closes an alert is always sent, even under a silence or when a person resolved it.
    2. What is silenced or below the channel's severity is suppressed.
    3. So is what falls into quiet hours; it is sent after them, if the incident is still open.
    4. Beyond a number an hour, the rest is collected in a digest.
    """
    closes_alert = bool(alerts) and channel.kind != Channel.Kind.EMAIL
    if notice.reason == Reason.RECOVERED and closes_alert:
        return State.QUEUED, ""
    if why := _why_suppressed(notice, channel, was_notified=alerts is not None):
        return State.SUPPRESSED, why
    if sent_in_hour >= channel.digest_above:
        return State.DIGESTED, f"more than {channel.digest_above} within an hour"
    return State.QUEUED, ""


def _why_suppressed(notice: Notice, channel: Channel, *, was_notified: bool) -> str:
    if notice.reason == Reason.RECOVERED:
        return notice.held_by if was_notified else "the channel was not notified of the incident"
    if notice.held_by:
        return notice.held_by
    if rank(notice.severity) < rank(channel.min_severity):
        return f"{notice.severity} is below {channel.min_severity}"
    if channel.is_in_quiet_hours(notice.at):
        hours = f"{channel.quiet_from:%H:%M} to {channel.quiet_to:%H:%M} {channel.zone}"
        return f"{QUIET_HOURS}, {hours}"
    return ""


def queue_alone(channel: Channel, facts: Facts) -> Notification:
    """Write a test or canary: no incident, no rules, just whether it gets through."""
    row = Notification.objects.create(
        project_id=channel.project_id,
        channel=channel,
        reason=facts.reason,
        severity="info",
        facts=facts.as_json(),
        created_at=facts.at,
        next_attempt_at=facts.at,
    )
    enqueue(TASK, {}, QUEUE, channel.project_id)
    return row


def _row(
    notice: Notice, channel: Channel, facts: Facts, sent_in_hour: int, alerts: int | None
) -> Notification:
    fate, why = decide(notice, channel, sent_in_hour, alerts)
    return Notification(
        project_id=notice.incident.project_id,
        channel=channel,
        incident=notice.incident,
        transition=notice.transition,
        reason=notice.reason,
        round=notice.round,
        severity=notice.severity,
        state=fate,
        why=why,
        facts=facts.as_json(),
        created_at=notice.at,
        next_attempt_at=notice.at,
    )


def _open_digest(row: Notification) -> Notification:
    """Return the digest of a channel that still collects, and hold it until commit."""
    collecting = Notification.objects.filter(
        channel_id=row.channel_id, reason=Reason.DIGEST, state=State.QUEUED, tries=0
    )
    while True:
        digest = collecting.select_for_update().first()
        if digest is not None:
            return digest
        Notification.objects.bulk_create([_new_digest(row)], ignore_conflicts=True)


def _new_digest(row: Notification) -> Notification:
    earlier = Notification.objects.filter(channel_id=row.channel_id, reason=Reason.DIGEST)
    last = earlier.aggregate(last=Max("next_attempt_at"))["last"]
    empty = Facts(reason=Reason.DIGEST, project=row.facts["project"], at=row.created_at)
    return Notification(
        project_id=row.project_id,
        channel_id=row.channel_id,
        reason=Reason.DIGEST,
        severity=row.severity,
        facts=empty.as_json(),
        created_at=row.created_at,
        next_attempt_at=digest_due(row.created_at, last),
    )


def _notified_channels(incident: Incident) -> Mapping[int, int]:
    """Return the channels that were told of an incident, with how often outside a digest."""
    rows = incident.notifications.exclude(state=State.SUPPRESSED)
    alone = Count("pk", filter=~Q(state=State.DIGESTED))
    return dict(rows.values_list("channel_id").annotate(alone=alone).order_by())


def facts_of(notice: Notice) -> Facts:
    """Freeze what is known of an incident at this moment."""
    incident, transition, reason = notice.incident, notice.transition, notice.reason
    slices = list(incident.slices.select_related("rule").order_by("pk"))
    names = widest_of(slice_words(row.slice) for row in slices)
    verdict = incident.latest_verdict
    _, low, high = verdict.onset or (None,) * 3
    rate, by = verdict.rate or _rate_of_slices(slices), incident.resolved_by
    facts = Facts(
        reason=reason,
        project=incident.project.name,
        severity=transition.severity,
        at=notice.at,
        title=incident.title,
        rate_subject=_rate_subject(incident),
        told=verdict.told,
        incident=incident.pk,
        path=reverse("incident", args=[incident.pk]),
        onset=incident.onset,
        onset_low=low if low != high else None,
        onset_high=high if low != high else None,
        fired_at=incident.fired_at,
        ended_at=incident.cleared_at,
        rate=rate,
        cause=incident.cause_words(),
        advice=verdict.advice,
        samples=_samples(incident, notice.at),
        rules=list(dict.fromkeys(row.rule.name for row in slices)),
        slices=names[:MOST_SLICES],
        more_slices=max(len(names) - MOST_SLICES, 0),
        note=notice.note,
        is_usual=reason == Reason.RECOVERED
        and incident.resolution_cause == Incident.Cause.NEW_USUAL_LEVEL,
        ended_by="" if transition.kind != Transition.Kind.RESOLVED else str(by or "an API key"),
        is_reopened=transition.kind == Transition.Kind.REOPENED and reason == Reason.REMINDER,
    )
    return Facts.model_validate(redact_json(_in_one_line(facts.as_json())))


def _in_one_line(value: JSON) -> JSON:
    """Return it without line ends: a name with one could forge a line of a message."""
    if isinstance(value, str):
        return value.translate(ONE_LINE)
    if isinstance(value, list):
        return [_in_one_line(one) for one in value]
    if isinstance(value, dict):
        return {name: _in_one_line(one) for name, one in value.items()}
    return value


def _rate_subject(incident: Incident) -> str:
    """Return what the rate is of, if not of what the title names: what the verdict is on."""
    is_outage = incident.cause == Cause.PROVIDER_OUTAGE
    return "" if is_outage else incident.latest_verdict.name


def _rate_of_slices(slices: Sequence[IncidentSlice]) -> StoredRate | None:
    # Of a limit of latency it would be the share of slow calls.
    counted = [row for row in slices if row.rule.signal in RATIOS and 0 < row.n >= row.k]
    if not counted:
        return None
    worst = max(counted, key=lambda row: row.k / row.n)
    low, high = wilson_interval(worst.k, worst.n)
    return StoredRate(
        share=worst.k / worst.n,
        low=low,
        high=high,
        baseline=worst.baseline,
        n=worst.n,
        counted=f"{noun_of(worst.rule.signal)}s",
    )


def _samples(incident: Incident, now: datetime) -> list[SampleRun]:
    selection = read_selection(dict(parse_qsl(incident.filter)))
    events = latest_events(incident.project_id, FAILURE_EVENT_KINDS, selection, now, SAMPLED)
    references = dict.fromkeys(event.correlation_id for event in events if event.correlation_id)
    return [
        SampleRun(reference=name, path=f"{reverse('find_goal')}?{urlencode({'reference': name})}")
        for name in list(references)[:SAMPLES]
    ]
