"""Notifications to chat and paging services: apprise sends them, in a process of its own."""

import json
import subprocess
import sys
from typing import Any

from django.conf import settings

from diagnostics.alerting.channels import target_of
from diagnostics.alerting.incident_facts import acknowledge_url, read_facts, stable_key
from diagnostics.alerting.notification_facts import Facts, lead_of, story_of, subject_of
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.senders import SendError, Sending
from diagnostics.alerting.senders.chat_services import ChatAddressError, check_address
from diagnostics.redaction.redactor import redact

PROGRAM = ("-m", "diagnostics.alerting.senders.chat_process")
MOST_SECONDS = 15.0
# On top of it, for a busy machine to start and end the process.
START_SECONDS = 30.0
ERROR_BYTES = 300
TONES = {"recovered": "success", "test": "info", "canary": "info"}
SEVERITY_TONES = {"critical": "failure"}
# Which of a service's own fields keeps its alert together.
KEYED = {"pagerduty": ("dedup",), "opsgenie": ("alias", "entity")}


def prepare_chat(row: Notification) -> Sending:
    """Read what is sent through the service of the channel's address."""
    facts = read_facts(row)
    order: dict[str, Any] = {
        "address": target_of(row.channel),
        "title": subject_of(facts),
        "body": body_of(row, facts),
        "tone": TONES.get(facts.reason) or SEVERITY_TONES.get(facts.severity, "warning"),
        "attributes": {},
        "storage": str(settings.FAILSOFT_DATA_DIR.absolute() / "apprise"),
        "allow_private": settings.FAILSOFT_HTTP_ALLOW_PRIVATE,
    }
    try:
        service = check_address(order["address"])
    except ChatAddressError as error:
        raise SendError(str(error)) from None
    if row.incident_id is not None:
        order["attributes"] = _correlation_fields(service.module, stable_key(row))
    return lambda: send_order(order)


def send_order(order: dict[str, Any]) -> str:
    """Have a process send it; SendError says why the service did not get it."""
    try:
        ended = subprocess.run(  # noqa: S603 - a program of ours
            [sys.executable, "-X", "utf8", "-E", "-s", *PROGRAM],
            input=json.dumps({**order, "seconds": MOST_SECONDS}).encode(),
            capture_output=True,
            timeout=START_SECONDS + MOST_SECONDS,
            cwd=settings.BASE_DIR,
            # No proxy, no netrc, nothing else that would lead it elsewhere.
            env={"HOME": "/nonexistent"},
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
    if answer["error"]:
        raise SendError(redact(answer["error"], ERROR_BYTES))
    return f"accepted by {answer['service']}"


def body_of(row: Notification, facts: Facts) -> str:
    """Write what a chat shows: the reason, the rate, what to change, and the links."""
    base = settings.FAILSOFT_BASE_URL
    lines = [lead_of(facts), story_of(facts)]
    if facts.rate:
        lines.append(f"Rate: {facts.rate.words}")
    lines += [f"Change: {advice.text}" for advice in facts.advice]
    lines += [f"{line.subject} {base}{line.path}" for line in facts.lines]
    lines.append(f"{facts.more_lines:,} more" if facts.more_lines else "")
    lines.append(base + facts.path if facts.path else "")
    link = acknowledge_url(row)
    lines.append(f"Acknowledge: {link}" if link else "")
    return "\n".join(line for line in lines if line)


def _correlation_fields(module: str, key: str) -> dict[str, str]:
    """Have a pager know the incident by our key, so that recovery closes its alert."""
    ties = dict.fromkeys(KEYED.get(module, ()), key)
    # A recovery resolves what the fire has triggered.
    return ties | ({"action": "map"} if module == "pagerduty" else {})
