"""What every sender makes of a notification: what it says, its key and its acknowledge link."""

from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.urls import reverse

from diagnostics.alerting.notification_facts import (
    MOST_LINES,
    DigestLine,
    Facts,
    brief_of,
    headline_of,
    summarise,
)
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.states import rank
from diagnostics.web.signed_links import sign_link

ACKNOWLEDGE = "acknowledge"
"""What its links are signed for."""
ACKNOWLEDGED = frozenset({"fired", "worsened", "reminder", "escalated"})
KEEP_LINK = timedelta(days=7)


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
