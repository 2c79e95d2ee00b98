"""What there is to tell of an incident: read once, redacted, kept in the notification."""

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.conf import settings
from django.urls import reverse

from diagnostics.alerting.attribution import NAMELESS
from diagnostics.alerting.incident_models import Incident, IncidentSlice, Transition
from diagnostics.alerting.notification_facts import (
    MOST_LINES,
    DigestLine,
    FactRate,
    Facts,
    SampleRun,
    advice_of,
    brief_of,
    headline_of,
    rate_of,
    summarise,
)
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.signals import RATIOS, noun_of
from diagnostics.alerting.states import rank
from diagnostics.alerting.wording import slice_words, widest_of
from diagnostics.analysis.statistics import wilson_interval
from diagnostics.figures import ONE_LINE
from diagnostics.queries.events import latest_degraded
from diagnostics.redaction.redactor import redact_json
from diagnostics.selection.selection import read_selection
from diagnostics.store.rollups import SERIES
from diagnostics.verdict.cause import Cause
from diagnostics.verdict.wording import onset_of, sentence_of
from diagnostics.web.signed_links import sign_link
from failsoft.json_values import JSON

ACKNOWLEDGE = "acknowledge"
"""What its links are signed for."""
ACKNOWLEDGED = frozenset({"fired", "worsened", "reminder", "escalated"})
KEEP_LINK = timedelta(days=7)
SAMPLES = 3
MOST_SLICES = 10


def facts_of(
    incident: Incident, transition: Transition, reason: str, now: datetime, note: str
) -> Facts:
    """Freeze what is known of an incident at this moment."""
    slices = list(incident.slices.select_related("rule").order_by("pk"))
    names = widest_of(slice_words(row.slice) for row in slices)
    verdict = incident.latest_verdict
    _, low, high = onset_of(verdict) or (None,) * 3
    rate = rate_of(verdict) or _rate_of_slices(slices)
    facts = Facts(
        reason=reason,
        project=incident.project.name,
        severity=transition.severity,
        at=now,
        title=incident.title,
        told=sentence_of(verdict),
        incident=incident.pk,
        path=reverse("incident", args=[incident.pk]),
        onset=incident.onset,
        onset_low=low if low != high else None,
        onset_high=high if low != high else None,
        fired_at=incident.fired_at,
        ended_at=incident.cleared_at,
        rate=rate,
        title_rate=rate if _is_on_title(incident, slices) else _rate_of_slices(slices),
        cause=cause_of(incident),
        advice=advice_of(verdict),
        samples=_samples(incident, now),
        rules=list(dict.fromkeys(row.rule.name for row in slices)),
        slices=names[:MOST_SLICES],
        more_slices=max(len(names) - MOST_SLICES, 0),
        note=note,
        is_usual=reason == "recovered"
        and incident.resolution_cause == Incident.Cause.NEW_USUAL_LEVEL,
        ended_by=_ended_by(incident, transition),
        is_reopened=transition.kind == Transition.Kind.REOPENED and reason == "reminder",
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


def _ended_by(incident: Incident, transition: Transition) -> str:
    if transition.kind != Transition.Kind.RESOLVED:
        return ""
    by = incident.resolved_by
    return by.get_username() if by else "an API key"


def _is_on_title(incident: Incident, slices: Sequence[IncidentSlice]) -> bool:
    """Whether the verdict is on what the title names: an outage, or what all slices share."""
    if incident.cause == Cause.PROVIDER_OUTAGE:
        return True
    judged = {
        name: incident.latest_verdict[name] for name in SERIES if name in incident.latest_verdict
    }
    named = {name: {row.slice.get(name) for row in slices} for name in judged}
    return all(len(values) > 1 or judged[name] in values for name, values in named.items())


def _rate_of_slices(slices: Sequence[IncidentSlice]) -> FactRate | None:
    # Of a limit of latency it would be the share of slow calls.
    counted = [row for row in slices if row.rule.signal in RATIOS and 0 < row.n >= row.k]
    if not counted:
        return None
    worst = max(counted, key=lambda row: row.k / row.n)
    low, high = wilson_interval(worst.k, worst.n)
    return FactRate(
        share=worst.k / worst.n,
        low=low,
        high=high,
        baseline=worst.baseline,
        n=worst.n,
        counted=f"{noun_of(worst.rule.signal)}s",
    )


def cause_of(incident: Incident, zone: tzinfo | None = None) -> str:
    """Return the cause by the latest verdict that names one, if any; UTC without a zone."""
    is_named = incident.latest_verdict.get("cause") not in NAMELESS
    sentence = sentence_of(incident.latest_verdict if is_named else incident.verdict)
    if sentence is None:
        return ""
    return sentence.written(zone)[1] if zone else sentence.why


def _samples(incident: Incident, now: datetime) -> list[SampleRun]:
    selection = read_selection(dict(parse_qsl(incident.filter)))
    runs = latest_degraded(incident.project_id, selection, now, SAMPLES)
    references = [run.correlation_id for run in runs if run.correlation_id]
    return [
        SampleRun(reference=name, path=f"{reverse('find_goal')}?{urlencode({'reference': name})}")
        for name in references
    ]


def read_facts(row: Notification) -> Facts:
    """Return what a notification says in its channel's zone.

    A digest has a line for each incident, as it is by now: open and severe ones come first.
    """
    zone = row.channel.zone
    facts = Facts.model_validate({**row.facts, "zone": zone})
    if row.reason != Notification.Reason.DIGEST:
        return facts
    digested = row.digested.order_by("pk").values_list("facts", flat=True)
    latest = {one["incident"]: Facts.model_validate({**one, "zone": zone}) for one in digested}
    if not latest:
        return facts.model_copy(update={"title": "No alerts"})
    ranked = sorted(latest.values(), key=lambda one: (one.is_over, -rank(one.severity)))
    lines = [
        DigestLine(subject=headline_of(one), path=one.path, at=one.at)
        for one in ranked[:MOST_LINES]
    ]
    over = sum(one.is_over for one in ranked)
    return facts.model_copy(
        update={
            "severity": ranked[0].severity,
            "lines": lines,
            "more_lines": len(ranked) - len(lines),
            "title": summarise(brief_of(ranked[0]), len(ranked), over),
        }
    )


def stable_key(row: Notification) -> str:
    """Name what it is about, the same from fire to recovery: a pager's own key."""
    host = urlsplit(settings.FAILSOFT_BASE_URL).netloc
    if row.incident_id is None:
        return f"{host}/channels/{row.channel_id}/{row.reason}"
    return f"{host}/incidents/{row.incident_id}"


def acknowledge_url(row: Notification) -> str:
    """Return the link that acknowledges without signing in; empty where there is nothing to.

    The same row gives the same link, whenever it is sent.
    """
    if row.incident_id is None or row.reason not in ACKNOWLEDGED:
        return ""
    token = sign_link(ACKNOWLEDGE, row.pk, row.created_at + KEEP_LINK)
    return f"{settings.FAILSOFT_BASE_URL}{reverse('acknowledge_link', args=[token])}"
