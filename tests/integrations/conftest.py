"""A project, a scripted provider, and one matrix for the session, printed at its end."""

from collections.abc import Iterator

import pytest

from diagnostics.accounts.models import Project
from diagnostics.store.partitions import ensure_partitions
from tests.integrations.matrix import Matrix
from tests.integrations.provider import Provider, running_provider

_matrix = Matrix()


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def project(transactional_db: None) -> Project:
    ensure_partitions()
    return Project.objects.create(slug="p", name="P")


@pytest.fixture
def matrix() -> Matrix:
    """The matrix that every client writes its row into."""
    return _matrix


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the matrix."""
    if _matrix.rows:
        terminalreporter.section("integrations")
        for line in _matrix.lines():
            terminalreporter.write_line(line)
