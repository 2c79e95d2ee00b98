"""The embedded broker: Valkey on a unix socket, nothing kept on disk."""

import signal
import socket
from pathlib import Path
from urllib.parse import quote

from config.local.binaries import find_broker
from config.local.postgres import launched


def server_command(folder: Path, path: Path) -> list[str]:
    """Return the broker's command; messages are hints, so none is saved."""
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
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return launched([str(find_broker()), *words], end_with=signal.SIGTERM)


def broker_url(path: Path) -> str:
    """Return the address of the broker behind the unix socket `path`."""
    return f"redis+socket://{quote(str(path))}?virtual_host=0"


def answers(path: Path) -> bool:
    """Does a server accept connections on the unix socket `path`?"""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True
