"""One matrix for the session, printed at its end."""

import pytest

from tests.integrations.matrix import Matrix

_matrix = Matrix()


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
