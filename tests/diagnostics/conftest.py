"""What most tests of the diagnostics start from."""

import pytest

from diagnostics.accounts.models import Project


@pytest.fixture
def project() -> Project:
    """A project without anything in it."""
    return Project.objects.create(slug="p", name="P")
