"""Servers of benchmarks, each a process group of its own that ends with the benchmark."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from config.local.parts import answers_http

ROOT = Path(__file__).resolve().parents[1]
# Limits are asked for as always, and never reached.
NO_LIMITS = {
    "FAILSOFT_KEY_EVENTS_PER_SECOND": "1000000",
    "FAILSOFT_KEY_BURST_EVENTS": "100000000",
    "FAILSOFT_SPIKE_EVENTS_PER_MINUTE": "1000000000",
}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start_web(port: int, words: list[str], stack: ExitStack) -> int:
    """Start a web server of ours or like it; return its process group."""
    env = {**os.environ, **NO_LIMITS, "FAILSOFT_DATABASE_POOL_SIZE": "8"}
    return start([sys.executable, *words], env, f"http://127.0.0.1:{port}/healthz", stack)


def start(
    command: list[str], env: Mapping[str, str], address: str, stack: ExitStack, seconds: float = 60
) -> int:
    """Start a server and wait until an address answers; return its process group."""
    process = subprocess.Popen(  # noqa: S603 - our own words
        command,
        cwd=ROOT,
        env=env,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.callback(_end, process)
    deadline = time.monotonic() + seconds
    while not answers_http(address):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{command[:3]} did not start")
        time.sleep(0.2)
    return process.pid


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
