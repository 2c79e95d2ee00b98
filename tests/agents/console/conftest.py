"""A project whose member looks at its goals."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.test import Client

from diagnostics.accounts.models import Project
from tests.console import make_member, recently

Read = Callable[..., str]


@pytest.fixture
def client(client: Client, project: Project) -> Client:
    client.force_login(make_member(project))
    return client


@pytest.fixture
def read(client: Client) -> Read:
    """Give the HTML of a page."""

    def get(path: str, **query: Any) -> str:
        return client.get(path, query).content.decode()

    return get


@pytest.fixture
def at() -> datetime:
    """A moment some minutes ago."""
    return recently()
