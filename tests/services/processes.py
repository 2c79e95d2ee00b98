"""Our own programs as a server would run them."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def env_with(addresses: Mapping[str, str]) -> dict[str, str]:
    """Return the suite's environment with other servers."""
    return {**os.environ, **addresses}


def run(addresses: Mapping[str, str], *words: str) -> str:
    """Run a Python program of ours to its end; return what it printed."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=env_with(addresses),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def running(addresses: Mapping[str, str], log: Path, *words: str) -> Iterator[None]:
    """Run a Python program of ours until the end of the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=ROOT,
            env=env_with(addresses),
            stdout=output,
            stderr=output,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
