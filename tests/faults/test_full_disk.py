"""The disk of the database fills up: posts are refused with 503, and go on when there is room."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import embedded
from tests.faults.stack import eventually
from tests.faults.test_hanging_servers import health, readiness
from tests.faults.test_ingest_kills import (
    MAKE_KEY,
    Poster,
    Server,
    assert_stored_once,
    manage,
    started_web,
)

pytestmark = pytest.mark.faults
DISK = "192m"
# Written between two looks at the free space, at most.
BLOCK_BYTES = 64 << 10


@pytest.fixture
def disk() -> Iterator[Path]:
    """A small file system of its own."""
    with embedded.throw_away_folder() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0755", "none", str(folder)]
        if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
            pytest.skip("no file system may be mounted here")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def server(disk: Path) -> Iterator[Server]:
    running = Server(disk)
    try:
        manage(running, "migrate", "--verbosity", "0")
        yield running
    finally:
        running.end()


def fill(disk: Path) -> Path:
    """Take all the room there is."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * BLOCK_BYTES)
        except OSError:
            return filler


def test_a_full_disk_refuses_posts_and_loses_none(disk: Path, server: Server) -> None:
    key = manage(server, "shell", "-v", "0", "-c", MAKE_KEY).splitlines()[-1]
    poster = Poster(key)

    def answers_again(code: int) -> bool:
        """Does this code come three more times?"""
        enough = poster.codes[code] + 3
        return eventually(lambda: poster.codes[code] >= enough, 60)

    with started_web(server) as web:
        poster.web = web
        poster.start()
        assert answers_again(200)
        for _ in range(2):
            filler = fill(disk)
            assert answers_again(503), poster.codes
            assert health(web) == 200
            code, parts = readiness(web)
            assert (code, parts["database"]["ok"]) == (503, False)
            assert parts["database"]["reason"].startswith("disk full")
            filler.unlink()
            assert answers_again(200), poster.codes
        poster.is_over.set()
        poster.join(timeout=30)
    assert poster.wrong == []
    assert set(poster.codes) == {200, 503}
    assert_stored_once(server, poster.acknowledged)
