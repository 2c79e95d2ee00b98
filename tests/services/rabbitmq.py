"""A RabbitMQ of a test's own, where this machine has the program."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.faults.stack import free_port

READY_SECONDS = 90
# Before the one on the path, which on Debian goes on as another user.
PROGRAMS = f"/usr/lib/rabbitmq/bin:{os.environ.get('PATH', os.defpath)}"


@contextmanager
def running_rabbitmq(folder: Path, **settings: int) -> Iterator[str]:
    """Run a broker with these settings until the end of the block; give its URL."""
    program = shutil.which("rabbitmq-server", path=PROGRAMS)
    if program is None:
        pytest.skip("rabbitmq-server is not installed")
    port, log = free_port(), folder / "rabbitmq.log"
    config = folder / "rabbitmq.conf"
    config.write_text(f"listeners.tcp.local = 127.0.0.1:{port}\n", encoding="utf-8")
    words = " ".join(f"-rabbit {name} {value}" for name, value in settings.items())
    env = {
        **os.environ,
        # The cookie, which both ends of Erlang's door must know, is made here.
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"failsoft{port}@localhost",
        "RABBITMQ_CONFIG_FILE": str(config),
        "RABBITMQ_CONF_ENV_FILE": os.devnull,
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": words,
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program], cwd=folder, env=env, stdout=output, stderr=output, start_new_session=True
        )
    try:
        give_up_at = time.monotonic() + READY_SECONDS
        while not _answers(port):
            assert process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < give_up_at, log.read_text(encoding="utf-8")
            time.sleep(0.2)
        yield f"amqp://guest:guest@127.0.0.1:{port}//"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=20)


def _answers(port: int) -> bool:
    """Whether the broker speaks its protocol, not only listens."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as asked:
        asked.settimeout(2)
        asked.sendall(b"AMQP\x00\x00\x09\x01")
        return bool(asked.recv(1))
    return False
