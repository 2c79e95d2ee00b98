"""Notifications to a webhook: signed by Standard Webhooks, to a pinned address."""

import json
import socket
import time
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin

from django.conf import settings

from diagnostics import clock
from diagnostics.alerting.channels import secrets_of, shown_of, signed_headers, target_of
from diagnostics.alerting.notification_facts import headline_of, lead_of
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.senders import SendError, Sending
from diagnostics.alerting.senders.messages import acknowledge_url, read_facts, stable_key
from diagnostics.outbound.addresses import ForbiddenAddressError, choose_target
from diagnostics.outbound.pinned_http import (
    MAX_SECONDS,
    PinnedHttpError,
    UnreachableError,
    send_request,
)
from diagnostics.redaction.redactor import redact

ANSWER_BYTES = 300
# Types of an incident are `incident.fired` and so on; the others stand alone.
ALONE = frozenset({"test", "canary", "digest"})


def prepare_webhook(row: Notification) -> Sending:
    body = json.dumps(payload_of(row), ensure_ascii=False, allow_nan=False).encode()
    now = clock.now()
    secrets = secrets_of(row.channel, now)
    signed = signed_headers(secrets, str(row.key), int(now.timestamp()), body)
    headers = {"Content-Type": "application/json", **signed}
    return partial(post, target_of(row.channel), headers, body)


def post(url: str, headers: Mapping[str, str], body: bytes) -> str:
    """Post it; only an answer of 2xx counts, redirects are not followed."""
    try:
        answer = send_request(
            url,
            time.monotonic() + MAX_SECONDS,
            allow_private=settings.FAILSOFT_HTTP_ALLOW_PRIVATE,
            method="POST",
            headers=headers,
            content=body,
            # It has the message, whatever it still says.
            is_status_enough=True,
        )
    except UnreachableError as error:
        raise SendError(str(error), unreachable=True) from None
    except (PinnedHttpError, ForbiddenAddressError) as error:
        raise SendError(str(error)) from None
    text = redact(answer.body.decode("utf-8", "replace"), ANSWER_BYTES)
    reply, headers = f"{answer.status} {text}".rstrip(), answer.response.headers
    if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        return reply
    if location := headers.get("location"):
        leads_to = shown_of(urljoin(url, location))
        reply += f" (a redirect to {leads_to} is not followed: enter the address it leads to)"
    wait = headers.get("retry-after", "")
    raise SendError(f"the server answered {reply}", status=answer.status, retry_after=wait)


def probe_webhook(channel: Channel) -> bool:
    """Whether the server takes connections again; nothing is sent."""
    try:
        target = choose_target(
            target_of(channel), allow_private=settings.FAILSOFT_HTTP_ALLOW_PRIVATE
        )
        address = (str(target.address), target.port)
        with socket.create_connection(address, timeout=MAX_SECONDS):
            return True
    except (OSError, ForbiddenAddressError):
        return False


def payload_of(row: Notification) -> dict[str, Any]:
    """Return the body of a webhook: what happened, and everything known about it."""
    facts = read_facts(row)
    base = settings.FAILSOFT_BASE_URL
    payload = facts.as_json()
    kind = facts.reason if facts.reason in ALONE else f"incident.{facts.reason}"
    data = {
        "key": stable_key(row),
        "verdict": headline_of(facts),
        "lead": lead_of(facts),
        "url": base + facts.path if facts.path else None,
        "acknowledge_url": acknowledge_url(row) or None,
        "duration_seconds": facts.lasted,
        "sentence": " ".join(facts.verdict).strip(),
        **{name: payload[name] for name in _COPIED},
        "samples": [
            {"reference": sample.reference, "url": base + sample.path} for sample in facts.samples
        ],
        "alerts": [
            {"verdict": digested.subject, "url": base + digested.path, "at": line["at"]}
            for digested, line in zip(facts.lines, payload["lines"], strict=True)
        ],
    }
    if facts.reason == "digest":
        data["more_alerts"] = facts.more_lines
    return {"type": kind, "timestamp": payload["at"], "data": data}


_COPIED = (
    *("project", "severity", "title", "incident", "onset"),
    *("onset_low", "onset_high", "fired_at", "ended_at"),
    *("rate", "cause", "advice", "rules", "slices", "more_slices"),
)
