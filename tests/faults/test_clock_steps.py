"""The clock of beat's machine is set: what is periodic goes on, in both directions."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests import embedded
from tests.faults.stack import eventually
from tests.security.web import ROOT

pytestmark = pytest.mark.faults
QUEUE = "fold"
# Beat, with a clock that is as many seconds ahead as a file says.
BEAT = """
import sys
from datetime import timedelta
from pathlib import Path
from config.celery import Failsoft, app
now, ahead = Failsoft.now, Path(sys.argv[1])
Failsoft.now = lambda self: now(self) + timedelta(seconds=float(ahead.read_text()))
app.start(["beat", "--pidfile="])
"""


@pytest.fixture
def broker() -> Iterator[str]:
    with embedded.running_broker() as url:
        yield url


class Beat:
    """A beat process and its clock."""

    def __init__(self, folder: Path, broker: str) -> None:
        self._folder, self._env = folder, {**os.environ, "BROKER_URL": broker}
        self._queue = redis.Redis(unix_socket_path=broker.partition("://")[2].partition("?")[0])

    def set_clock(self, seconds: int) -> None:
        """Set its clock so many seconds ahead of ours."""
        written = self._folder / "ahead.new"
        written.write_text(str(seconds))
        written.replace(self._folder / "ahead")

    def start(self) -> None:
        """Start it."""
        words = [sys.executable, "-c", BEAT, str(self._folder / "ahead")]
        self._process = subprocess.Popen(words, cwd=ROOT, env=self._env)

    def end(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(timeout=30)

    def goes_on(self) -> bool:
        """Are ten more tasks queued?"""
        enough = self._count() + 10
        return eventually(lambda: self._count() >= enough, 60)

    def _count(self) -> int:
        return int(self._queue.llen(QUEUE))


def test_beat_goes_on_after_its_clock_was_set(tmp_path: Path, broker: str) -> None:
    beat = Beat(tmp_path, broker)
    beat.set_clock(0)
    beat.start()
    try:
        for seconds in (0, -7_200, 7_200, -100_000):
            beat.set_clock(seconds)
            assert beat.goes_on(), seconds
    finally:
        beat.end()
