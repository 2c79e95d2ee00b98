"""Our web server and the plain one, on the same throw-away PostgreSQL."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60
# Limits are asked for as always, and never reached.
NO_LIMITS = {
    "FAILSOFT_KEY_EVENTS_PER_SECOND": "1000000",
    "FAILSOFT_KEY_BURST_EVENTS": "100000000",
    "FAILSOFT_SPIKE_EVENTS_PER_MINUTE": "1000000000",
}


def wsgi_words(port: int, application: str) -> list[str]:
    """Return what Python executes to serve WSGI with granian, one process, four threads."""
    words = ["-m", "granian", "--interface", "wsgi", "--host", "127.0.0.1"]
    words += ["--port", str(port), "--workers", "1", "--blocking-threads", "4"]
    return [*words, "--no-access-log", "--log-level", "warning", application]


def start_web(port: int, words: list[str], stack: ExitStack) -> int:
    """Start a web server of ours or like it; return its process group."""
    env = {**os.environ, **NO_LIMITS, "FAILSOFT_DATABASE_POOL_SIZE": "8"}
    return start([sys.executable, *words], env, port, "/healthz", stack)


def start(command: list[str], env: dict[str, str], port: int, path: str, stack: ExitStack) -> int:
    """Start a server in a process group of its own and wait until it answers."""
    process = subprocess.Popen(  # noqa: S603 - our own words
        command,
        cwd=ROOT,
        env=env,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.callback(process.wait)
    stack.callback(_end, process)
    deadline = time.monotonic() + START_SECONDS
    while not _answers(port, path):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{command[:3]} did not start")
        time.sleep(0.2)
    return process.pid


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def _answers(port: int, path: str) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        connection.getresponse().read()
    except OSError:
        return False
    finally:
        connection.close()
    return True
