"""Notifications to chat and paging services: apprise sends them, in a process of its own."""

import json
import os
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from diagnostics.alerting.channels import target_of
from diagnostics.alerting.notification_facts import (
    Facts,
    headline_of,
    lead_of,
    story_of,
    subject_of,
)
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.senders import SendError, Sending
from diagnostics.alerting.senders.chat_services import ChatAddressError, check_address
from diagnostics.alerting.senders.messages import acknowledge_url, read_facts, stable_key
from diagnostics.redaction.redactor import redact

PROGRAM = ("-m", "diagnostics.alerting.senders.chat_process")
MOST_SECONDS = 15.0
# On top of it, for a busy machine to start and end the process.
START_SECONDS = 30.0
ERROR_BYTES = 300
TONES = {"recovered": "success", "test": "info", "canary": "info"}
SEVERITY_TONES = {"critical": "failure"}
# Which of a service's own fields keeps an alert or thread together, by the modules of apprise.
KEYED = {
    "firehydrant": ("dedup",),
    "google_chat": ("thread_key",),
    "ilert": ("dedup",),
    "incidentio": ("dedup",),
    "opsgenie": ("alias",),
    "pagerduty": ("dedup",),
    "pagertree": ("thirdparty",),
    "signl4": ("external_id",),
    "splunk": ("entity_id",),
    "squadcast": ("dedup",),
}


def prepare_chat(row: Notification) -> Sending:
    facts, link = read_facts(row), acknowledge_url(row)
    links = [settings.FAILSOFT_BASE_URL + facts.path] if facts.path else []
    order: dict[str, Any] = {
        "address": target_of(row.channel),
        "title": subject_of(facts),
        "topic": f"[{facts.project}] {facts.title}",
        "body": body_of(facts),
        "links": "\n".join([*links, *([f"Acknowledge: {link}"] if link else [])]),
        "tone": TONES.get(facts.reason) or SEVERITY_TONES.get(facts.severity, "warning"),
        "attributes": {},
        "storage": str(settings.FAILSOFT_DATA_DIR.absolute() / "apprise"),
        "allow_private": settings.FAILSOFT_HTTP_ALLOW_PRIVATE,
    }
    try:
        service = check_address(order["address"])
    except ChatAddressError as error:
        raise SendError(str(error)) from None
    if service.module == "pagerduty":
        host = str(urlsplit(settings.FAILSOFT_BASE_URL).hostname)
        order["attributes"] = {"source": host, "component": facts.project}
    if row.incident_id is not None and service.module in KEYED:
        # A recovery resolves what the fire has triggered.
        keys = dict.fromkeys(KEYED[service.module], stable_key(row))
        order["attributes"] |= {"action": "map", **keys}
    return lambda: send_order(order)


def send_order(order: dict[str, Any]) -> str:
    """Have a process send it; SendError says why the service did not get it."""
    # By this variable requests learns of the authorities.
    file = os.environ.get("SSL_CERT_FILE")
    authorities = {"REQUESTS_CA_BUNDLE": file} if file else {}
    try:
        ended = subprocess.run(  # noqa: S603 - a program of ours
            [sys.executable, "-X", "utf8", "-E", "-s", *PROGRAM],
            input=json.dumps({**order, "seconds": MOST_SECONDS}).encode(),
            capture_output=True,
            timeout=START_SECONDS + MOST_SECONDS,
            cwd=settings.BASE_DIR,
            # No proxy, no netrc, nothing else that would lead it elsewhere.
            env={"HOME": "/nonexistent", **authorities},
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise SendError("the sender did not start or end in time") from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode("utf-8", "replace").strip().splitlines()
        # The kind of exception: its text may hold parts of the address.
        words = lines[-1].partition(":")[0] if lines else f"exit {error.returncode}"
        raise SendError(redact(f"the sender failed: {words}", ERROR_BYTES)) from None
    answer = json.loads(ended.stdout)
    if words := answer["error"]:
        raise SendError(
            redact(words, ERROR_BYTES), status=answer["status"], retry_after=answer["retry_after"]
        )
    return f"accepted by {answer['service']}"


def body_of(facts: Facts) -> str:
    """Write what a chat shows before the links: the verdict, the reason, what to change."""
    lines = [lead_of(facts), story_of(facts)]
    if facts.told and not facts.is_over:
        lines.insert(0, headline_of(facts))
        lines += [f"Change: {advice.text}" for advice in facts.advice]
    if len(facts.slices) > 1:
        # Names have commas.
        more = [f"{facts.more_slices:,} more"] if facts.more_slices else []
        lines.append(f"Affected: {'; '.join([*facts.slices, *more])}")
    if facts.rate and not facts.is_over:
        lines.append(f"Rate: {facts.rate.words}")
    lines += [f"{line.subject} {settings.FAILSOFT_BASE_URL}{line.path}" for line in facts.lines]
    lines.append(f"{facts.more_lines:,} more" if facts.more_lines else "")
    return "\n".join(line for line in lines if line)
