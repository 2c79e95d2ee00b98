"""The embedded broker: Valkey on a unix socket, without persistence."""

import signal
import socket
from pathlib import Path
from urllib.parse import quote

from config.local.binaries import find_broker
from config.local.postgres import launch_command


def server_command(folder: Path, path: Path) -> list[str]:
    """Return the command of the broker; messages are hints, so none is persisted."""
    options = {
        "port": "0",
        "unixsocket": str(path),
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "dir": str(folder),
        "maxmemory": "256mb",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    arguments = [argument for name, value in options.items() for argument in (f"--{name}", value)]
    return launch_command([str(find_broker()), *arguments], end_with=signal.SIGTERM)


def broker_url(path: Path) -> str:
    return f"redis+socket://{quote(str(path))}?virtual_host=0"


def answers(path: Path) -> bool:
    """Whether a server accepts connections on the unix socket `path`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True
