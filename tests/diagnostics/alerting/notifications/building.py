"""Incidents, channels and receivers for the tests of notifications."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from uuid import uuid4

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from django.db import connection, transaction

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.channels import keep_target, rotate_secret
from diagnostics.alerting.incident_models import Incident, IncidentSlice, Transition
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.notification_rows import notify
from diagnostics.alerting.rule_models import AlertRule, AlertState

VERDICT: dict[str, Any] = {
    "state": "degrading",
    "told": {
        "lead": "Degrading",
        "since": "2026-11-22T14:32:00Z",
        "rest": ": anthropic/claude-haiku, 31 % of 412 runs (baseline 4 %), mostly truncated.",
        "reason": [
            "Looks like the model or provider, not us: 5 prompt versions affected, last deploy at ",
            {"at": "2026-11-22T09:10:00Z"},
            ".",
        ],
    },
    "rate": 0.31,
    "low": 0.267,
    "high": 0.356,
    "baseline": 0.04,
    "runs": 412,
    "counted": "runs",
    "advice": [
        {
            "text": "Raise max_output_tokens from 1,024 to 2,048.",
            "evidence": "Cut-off answers end at 1,024 tokens.",
        }
    ],
}


def make_incident(project: Project, model: str = "claude-haiku", **fields: Any) -> Incident:
    """Give an open incident of one slice, fired now."""
    now = fields.pop("now", None) or clock.now()
    rule = fields.pop("rule", None) or make_rule(project)
    values = {"provider": "anthropic", "model": model}
    state = AlertState.objects.create(
        rule=rule, slice=values, key=uuid4(), state="firing", since=now
    )
    row: dict[str, Any] = {
        "title": f"anthropic/{model}",
        "severity": rule.severity,
        "onset": now - timedelta(minutes=18),
        "fired_at": now,
        "cause": "model",
        "cause_value": f"anthropic/{model}",
        "verdict": VERDICT,
        "filter": "provider=anthropic",
        **fields,
    }
    incident = Incident.objects.create(project=project, **row)
    IncidentSlice.objects.create(
        incident=incident,
        state=state,
        rule=rule,
        rule_version=1,
        severity=rule.severity,
        slice=values,
        onset=incident.onset,
        fired_at=now,
        k=128,
        n=412,
        value=0.31,
        bound=0.1,
        baseline=0.04,
    )
    return incident


def make_rule(project: Project, **fields: Any) -> AlertRule:
    """Give a rule with a name of its own."""
    row: dict[str, Any] = {
        "name": f"rule {uuid4().hex[:6]}",
        "signal": "call_failure_ratio",
        "detector": "change",
        "group_by": ["provider", "model"],
        **fields,
    }
    return AlertRule.objects.create(project=project, **row)


def happen(
    incident: Incident, kind: str = "fired", *, silenced: bool = False, at: datetime | None = None
) -> list[Notification]:
    """Write a transition and what is told of it, in one transaction."""
    with transaction.atomic():
        at = at or clock.now()
        if kind in ("cleared", "resolved"):
            incident.state, incident.cleared_at = "resolved", at
            incident.save()
        row = Transition.objects.create(
            incident=incident, kind=kind, at=at, severity=incident.severity, is_silenced=silenced
        )
        return notify(incident, row)


def make_channel(project: Project, kind: str = "email", target: str = "", **fields: Any) -> Channel:
    """Give a channel; a webhook has a secret."""
    row = Channel(project=project, kind=kind, **{"name": f"c-{uuid4().hex[:6]}", **fields})
    if kind == "email":
        row.shown = target or "ops@example.org"
    else:
        keep_target(row, target)
    row.save()
    if kind == "webhook":
        rotate_secret(row, clock.now())
    return row


def travel(by: timedelta) -> None:
    """Move the database's clock on, until the test's transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('failsoft.clock_shift', (coalesce(nullif("
            "current_setting('failsoft.clock_shift', true), ''), '0')::interval"
            " + %s::interval)::text, true)",
            [f"{by.total_seconds()} seconds"],
        )


class Hook:
    """A receiver of webhooks on loopback: what came, and what it answers."""

    def __init__(self) -> None:
        self.seen: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        self.slow = 0.0
        self.headers: dict[str, str] = {}
        self.answer = b"ok"

    def bodies(self) -> list[dict[str, Any]]:
        """What was posted, as JSON."""
        return [json.loads(body) for _, body in self.seen]


@contextmanager
def receiving(port: int = 0) -> Iterator[tuple[Hook, str]]:
    """Run a receiver; gives it and its address."""
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            hook.seen.append(
                ({k.lower(): v for k, v in self.headers.items()}, self.rfile.read(size))
            )
            self.send_response(hook.status)
            for name, value in hook.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(hook.answer)))
            self.end_headers()
            self.wfile.write(hook.answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hook, f"http://127.0.0.1:{server.server_address[1]}/hook"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Mailbox:
    """What an SMTP server took; addresses in `refuse` are answered so instead, as is the text."""

    def __init__(self) -> None:
        self.taken: list[Envelope] = []
        self.taken_at: list[float] = []
        self.refuse: dict[str, str] = {}
        self.refuse_text = ""
        self.wants_full_name = False

    async def handle_RCPT(  # noqa: N802 - its name is given
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Take or refuse one address."""
        if self.wants_full_name and "." not in (session.host_name or ""):
            return "504 5.5.2 Helo command rejected: need fully-qualified hostname"
        if answer := self.refuse.get(address):
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - its name is given
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        """Keep the mail, or refuse it once it is read."""
        if self.refuse_text:
            return self.refuse_text
        self.taken.append(envelope)
        self.taken_at.append(time.monotonic())
        return "250 OK"


@contextmanager
def mail_server(port: int, **tls: Any) -> Iterator[Mailbox]:
    """Run a real SMTP server on loopback."""
    box = Mailbox()
    controller = Controller(box, hostname="127.0.0.1", port=port, **tls)
    controller.start()
    try:
        yield box
    finally:
        controller.stop()


def at_rest(row: Notification) -> Notification:
    """Read a row again."""
    row.refresh_from_db()
    return row
