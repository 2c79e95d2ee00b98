"""The data folder of the one-machine stack: lock, keys, sockets and logs."""

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

from config.configuration import random_working_key

SOCKET_PATH_LIMIT = 107  # bytes, a limit of the kernel
LONGEST_SOCKET_NAME = "/pg/.s.PGSQL.5432"
FIRST_GOAL_FILE = "first-goal.json"
TIMES_FILE = "start-times.json"
REQUIRED_BYTES = 500 * 1024 * 1024


class FolderError(Exception):
    """The data folder cannot be used; the message says why and what to do."""


class AlreadyRunningError(Exception):
    """Another stack uses this data folder; the message has its address and pid."""


@dataclass(frozen=True)
class Folder:
    path: Path

    @property
    def postgres(self) -> Path:
        return self.path / "postgres"

    @property
    def logs(self) -> Path:
        """One log file per part."""
        return self.path / "logs"

    @property
    def sockets(self) -> Path:
        """The folder of unix sockets; a temporary one when the path is too long."""
        default = self.path / "sockets"
        if len(os.fsencode(f"{default}{LONGEST_SOCKET_NAME}")) <= SOCKET_PATH_LIMIT:
            return default
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"failsoft-{os.getuid()}-{digest}"


def prepare_folder(path: Path) -> Folder:
    """Create the missing parts of the data folder; FolderError has the reason."""
    folder = Folder(path)
    try:
        for part in (path, folder.logs):
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
        (path / ".writable").touch()
        (path / ".writable").unlink()
    except OSError as error:
        raise FolderError(
            f"cannot write to {path}: {error.strerror}; choose another folder with --data"
        ) from error
    free = shutil.disk_usage(path).free
    if free < REQUIRED_BYTES:
        raise FolderError(
            f"only {free >> 20} MiB free for {path}, {REQUIRED_BYTES >> 20} MiB needed;"
            " free disk space or choose another folder with --data"
        )
    return folder


def prepare_sockets(folder: Folder) -> None:
    """Create the empty, private folder of sockets; the lock must be held."""
    sockets = folder.sockets
    sockets.mkdir(mode=0o700, exist_ok=True)
    state = sockets.lstat()
    if sockets.is_symlink() or state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise FolderError(f"{sockets} belongs to another user; remove it")
    shutil.rmtree(sockets / "pg", ignore_errors=True)
    (sockets / "broker").unlink(missing_ok=True)
    (sockets / "pg").mkdir(mode=0o700)


def remove_sockets(folder: Folder) -> None:
    shutil.rmtree(folder.sockets, ignore_errors=True)


def take_lock(folder: Folder, url: str) -> int:
    """Return a descriptor that locks the folder until its last holder ends."""
    descriptor = os.open(folder.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(descriptor, 1000).decode() or "{}"
        os.close(descriptor)
        holder = json.loads(text)
        raise AlreadyRunningError(
            f"already running at {holder.get('url', '?')}, pid {holder.get('pid', '?')}"
            f" (data folder {folder.path})"
        ) from None
    sign_lock(descriptor, url, os.getpid())
    return descriptor


def sign_lock(descriptor: int, url: str, pid: int) -> None:
    """Write the holder of the lock, for the message of a second start."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps({"url": url, "pid": pid}).encode(), 0)


def read_keys(folder: Folder) -> dict[str, str]:
    """Return the keys of the stack, created at the first start with mode 0600."""
    path = folder.path / "keys.json"
    if not path.exists():
        keys = {
            "secret_key": secrets.token_urlsafe(50),
            "working_key": random_working_key(),
            "model_key": secrets.token_urlsafe(32),
        }
        # Whole or not at all: half a file would end every later start.
        unfinished = path.with_suffix(".new")
        unfinished.touch(0o600)
        unfinished.write_text(json.dumps(keys), encoding="utf-8")
        unfinished.replace(path)
    return dict(json.loads(path.read_text(encoding="utf-8")))


def is_free(port: int) -> bool:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def steady_port(folder: Folder, name: str) -> int:
    """Return a free port, if possible the one of the last start."""
    port_file = folder.path / f"{name}-port"
    try:
        port = int(port_file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        port = 0
    if not port or not is_free(port):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            port = server.getsockname()[1]
        port_file.write_text(str(port), encoding="ascii")
    return port
