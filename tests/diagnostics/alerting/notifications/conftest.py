"""Fixtures of the notification tests: a project, a mail server, a receiver of webhooks."""

import socket
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from diagnostics.accounts.models import Project
from tests.diagnostics.alerting.notifications.building import Hook, Mailbox, mail_server, receiving


@pytest.fixture
def project(db: None) -> Project:
    return Project.objects.create(slug="p1", name="P1")


@pytest.fixture
def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


@pytest.fixture
def smtp_port(settings: Settings, free_port: int) -> int:
    """Point mail at a port of loopback where nobody listens yet."""
    settings.EMAIL_BACKEND = "diagnostics.outbound.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port
    settings.FAILSOFT_BASE_URL = "https://failsoft.example.org"
    return free_port


@pytest.fixture
def mailbox(smtp_port: int) -> Iterator[Mailbox]:
    with mail_server(smtp_port) as box:
        yield box


@pytest.fixture
def hook(settings: Settings) -> Iterator[tuple[Hook, str]]:
    settings.FAILSOFT_HTTP_ALLOW_PRIVATE = True
    with receiving() as found:
        yield found
