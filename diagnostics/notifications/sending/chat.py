"""Notifications to chat and paging services, through apprise; only workers load it."""

import logging
import re

from apprise import Apprise, AppriseAsset, NotifyType, PersistentStoreMode
from apprise.logger import LogCapture
from apprise.plugins.base import NotifyBase
from apprise.plugins.pagerduty import NotifyPagerDuty, PagerDutyAction
from django.conf import settings

from diagnostics.core.notifying.facts import Facts
from diagnostics.core.notifying.words import lead_of, subject_of
from diagnostics.models import Notification
from diagnostics.notifications.ack_links import acknowledge_url
from diagnostics.notifications.channels import target_of
from diagnostics.notifications.facts import read_facts, stable_key
from diagnostics.notifications.sending.chat_services import FIXED, HERE_ONLY
from diagnostics.notifications.sending.faults import SendError
from diagnostics.outbound.addresses import ForbiddenAddressError, choose_target
from diagnostics.redaction.redacting import redact

MOST_SECONDS = 5
ERROR_BYTES = 300
TONES = {
    "recovered": NotifyType.SUCCESS,
    "test": NotifyType.INFO,
    "canary": NotifyType.INFO,
}
# Which of a service's own fields keeps its alert together.
KEYED = {"NotifyPagerDuty": ("dedup",), "NotifyOpsgenie": ("alias", "entity")}
_PREFIX = re.compile(r"^\S+ \S+ - \S+ - ")


def send_chat(row: Notification) -> str:
    """Send it through the service of the channel's address."""
    facts = read_facts(row)
    service = open_service(target_of(row.channel))
    _tie(service, row)
    with LogCapture(level=logging.WARNING) as log:  # type: ignore[no-untyped-call] # apprise's
        taken = service.notify(
            body=body_of(row, facts), title=subject_of(facts), notify_type=_tone(facts)
        )
        said = log.getvalue() if log else ""
    if not taken:
        words = redact(_last_line(said) or "the service did not take it", ERROR_BYTES)
        raise SendError(words)
    return f"taken by {service.service_name}"


def open_service(address: str) -> NotifyBase:
    """Give the service of an address, if it may be reached from here (S17)."""
    scheme = address.partition("://")[0].lower()
    if scheme in HERE_ONLY:
        raise SendError(f"{scheme}:// speaks to this machine, which is not allowed")
    asset = AppriseAsset(
        app_id="Failsoft",
        app_desc="Failsoft",
        http_redirects=False,
        # Opsgenie closes an alert by a number that it gave when it was opened.
        storage_path=str(settings.FAILSOFT_DATA_DIR / "apprise"),
        storage_mode=PersistentStoreMode.FLUSH,
    )
    service = Apprise.instantiate(address, asset=asset, suppress_exceptions=True)
    if not isinstance(service, NotifyBase):
        raise SendError("this is not an address that apprise knows")
    service.socket_connect_timeout = service.socket_read_timeout = MOST_SECONDS
    if scheme not in FIXED and not settings.FAILSOFT_HTTP_ALLOW_PRIVATE:
        _look_at(service)
    return service


def body_of(row: Notification, facts: Facts) -> str:
    """Write what a chat shows: why, the verdict, what to change, and where to look."""
    base = settings.FAILSOFT_BASE_URL
    told = [lead_of(facts), facts.sentence if facts.reason != "recovered" else ""]
    if facts.rate:
        told.append(f"Rate: {facts.rate.words}")
    told += [f"Change: {one.text}" for one in facts.advice]
    told += [f"{one.subject} {base}{one.path}" for one in facts.lines]
    told.append(base + facts.path if facts.path else "")
    link = acknowledge_url(row)
    told.append(f"Acknowledge: {link}" if link else "")
    return "\n".join(line for line in told if line)


def _tone(facts: Facts) -> NotifyType:
    if facts.reason in TONES:
        return TONES[facts.reason]
    is_bad = facts.severity == "critical"
    return NotifyType.FAILURE if is_bad else NotifyType.WARNING


def _tie(service: NotifyBase, row: Notification) -> None:
    """Have a pager know the incident by our key, so that recovery closes its alert."""
    if row.incident_id is None:
        return
    for name in KEYED.get(type(service).__name__, ()):
        if not getattr(service, name, None):
            setattr(service, name, stable_key(row))
    if isinstance(service, NotifyPagerDuty):
        # A recovery resolves what the fire has triggered.
        service.action = PagerDutyAction.MAP


def _look_at(service: NotifyBase) -> None:
    host = getattr(service, "host", None)
    if not host:
        raise SendError("the address names no host; set FAILSOFT_HTTP_ALLOW_PRIVATE")
    port = f":{service.port}" if getattr(service, "port", None) else ""
    try:
        choose_target(f"https://{host}{port}/")
    except ForbiddenAddressError as error:
        raise SendError(str(error)) from None


def _last_line(log: str) -> str:
    lines = [line for line in log.strip().splitlines() if line.strip()]
    return _PREFIX.sub("", lines[-1]) if lines else ""
