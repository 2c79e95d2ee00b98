"""What most tests of the diagnostics start from."""

from datetime import datetime

import pytest

from diagnostics.accounts.models import Project
from tests.console import recently


@pytest.fixture
def project() -> Project:
    """A project without anything in it."""
    return Project.objects.create(slug="p", name="P")


@pytest.fixture
def at() -> datetime:
    """A moment some minutes ago."""
    return recently()
