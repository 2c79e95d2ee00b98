"""A project whose reports are looked at, and a mail server that is real."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import time
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from django.contrib.auth.models import User

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.reports.models import Subscription
from diagnostics.reports.subscriptions import schedule_of
from tests.console import Role, make_member


@dataclass
class MailServer:
    """What the server took: envelopes and parsed mails. `refuse` is answered instead.

    `refuse_text` is answered once a mail is read.
    """

    port: int = 0
    recipients: list[list[str]] = field(default_factory=list)
    mails: list[EmailMessage] = field(default_factory=list)
    refuse: str = ""
    refuse_text: str = ""

    async def handle_RCPT(  # noqa: N802 - the server's name for it
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        if self.refuse:
            return self.refuse
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        if self.refuse_text:
            return self.refuse_text
        self.recipients.append(list(envelope.rcpt_tos))
        found = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(found, EmailMessage)
        self.mails.append(found)
        return "250 OK"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def mail_server(settings: Any) -> Iterator[MailServer]:
    taken = MailServer(free_port())
    controller = Controller(taken, hostname="127.0.0.1", port=taken.port)
    controller.start()
    settings.EMAIL_BACKEND = "diagnostics.outbound.smtp.EmailBackend"
    settings.EMAIL_HOST = "127.0.0.1"
    settings.EMAIL_PORT = taken.port
    yield taken
    controller.stop()


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="planner", name="Planner")


@pytest.fixture
def ann(project: Project) -> User:
    user = make_member(project, "ann", Role.VIEWER)
    user.email = "ann@example.org"
    user.save()
    return user


def make_subscription(
    project: Project, user: User | None = None, due: bool = True, **changes: Any
) -> Subscription:
    """Keep a daily subscription in Berlin, due since its last time unless told."""
    given: dict[str, Any] = {
        "project": project,
        "user": user,
        "address": "" if user else "out@example.org",
        "cadence": "daily",
        "at": time(8),
        "zone": "Europe/Berlin",
        "token": "t" * 22,
        "next_at": clock.now(),
        **changes,
    }
    made = Subscription(**given)
    if "next_at" not in changes:
        schedule = schedule_of(made)
        now = clock.now()
        made.next_at = schedule.latest(now).at if due else schedule.after(now).at
    made.save()
    return made
