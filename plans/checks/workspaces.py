"""The folders that checks run in, and the decision files in them.

Each project has a separate folder below FAILSOFT_WORKSPACE_DIR. Each path component is opened
by itself without following links, so that neither a symbolic link nor a race of renames
escapes the workspace.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NewType

import structlog
from django.conf import settings

from failsoft.completion.specification import read_relative_path

logger = structlog.get_logger(__name__)

MAX_DECISION_BYTES = 1024 * 1024
# For checks without a project: workflows that a command runs in its own process.
NO_PROJECT = "no-project"
# Folders that earlier releases made in the root; those without an owner stay there.
EARLIER = ".earlier"
_COLLECTING = ".earlier.collecting"
FOLDER_MODE = 0o700
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class WorkspaceError(Exception):
    """the workspace or the decision file in it cannot be used"""


class UnreadableFileError(Exception):
    """there is a decision file, and it cannot be read"""


# The names of a workspace's folder below the root.
Workspace = NewType("Workspace", tuple[str, ...])
OwnersOf = Callable[[Collection[str]], Mapping[str, int]]


def workspace_of(project_id: int | None, path: str) -> Workspace:
    """Return the workspace of a project for a relative path.

    PathRefusedError for an absolute path, `..` and the like.
    """
    project = NO_PROJECT if project_id is None else str(project_id)
    return Workspace((project, *read_relative_path(path)))


def workspace_path(workspace: Workspace) -> Path:
    """Return the folder of a workspace, created if necessary."""
    with _folder(workspace):
        return Path(settings.FAILSOFT_WORKSPACE_DIR, *workspace)


def remove_workspace(workspace: Workspace) -> None:
    shutil.rmtree(Path(settings.FAILSOFT_WORKSPACE_DIR, *workspace), ignore_errors=True)


def clear_decision_file(workspace: Workspace, decision_file: str) -> Path:
    """Remove an old decision file, create its folders, and return its path.

    WorkspaceError when it cannot be removed: an old file must never decide.
    """
    *folders, name = read_relative_path(decision_file)
    place = (*workspace, *folders)
    with _folder(place) as folder:
        try:
            os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise WorkspaceError(f"{decision_file}: {error.strerror}") from None
    return Path(settings.FAILSOFT_WORKSPACE_DIR, *place, name)


def read_decision_file(workspace: Workspace, decision_file: str) -> str | None:
    """Return the text of the decision file, None when there is none.

    UnreadableFileError for a link, a pipe, a folder, a file of more than 1 MiB.
    """
    *folders, name = read_relative_path(decision_file)
    try:
        with _folder((*workspace, *folders)) as folder:
            raw = _read(name, folder)
    except FileNotFoundError:
        return None
    except (OSError, WorkspaceError) as error:
        raise UnreadableFileError(str(error)) from None
    return decode_decision(raw)


def part_by_project(owners_of: OwnersOf) -> None:
    """Move the workspaces of earlier releases below the projects that own them, once.

    `owners_of` returns the known projects of folder names, by name. Folders without an owner
    stay in `.earlier`, where no check reaches them.
    """
    _part(Path(settings.FAILSOFT_WORKSPACE_DIR), owners_of)


@cache
def _part(root: Path, owners_of: OwnersOf) -> None:
    root.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    # Several workers may start at the same moment; the lock ends with the descriptor.
    folder = os.open(root, _FOLDER_FLAGS & ~os.O_NOFOLLOW)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        _collect(root)
        names = [path.name for path in (root / EARLIER).iterdir()]
        owners = owners_of(names) if names else {}
        for name, project_id in owners.items():
            target = root / str(project_id) / name
            target.parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
            if target.exists():
                logger.warning("workspace_not_moved", name=name, project_id=project_id)
            else:
                (root / EARLIER / name).rename(target)
    finally:
        os.close(folder)


def _collect(root: Path) -> None:
    """Move the content of the root to `.earlier`; the root then holds project folders only."""
    partial = root / _COLLECTING
    if (root / EARLIER).exists():
        return
    partial.mkdir(mode=FOLDER_MODE, exist_ok=True)
    for path in list(root.iterdir()):
        if path.name not in (NO_PROJECT, _COLLECTING):
            path.rename(partial / path.name)
    partial.rename(root / EARLIER)


def decode_decision(raw: bytes) -> str:
    """Return the text of a decision file: UTF-16 with a byte order mark, else UTF-8."""
    if raw.startswith(_UTF16_MARKS):
        return raw.decode("utf-16", "replace")
    return raw.decode("utf-8", "replace")


def _read(name: str, folder: int) -> bytes:
    descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableFileError("not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            raw = file.read(MAX_DECISION_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(raw) > MAX_DECISION_BYTES:
        raise UnreadableFileError(f"more than {MAX_DECISION_BYTES} bytes")
    return raw


@contextmanager
def _folder(names: tuple[str, ...]) -> Iterator[int]:
    """Open a folder below the root, creating missing ones, and yield its descriptor."""
    root = Path(settings.FAILSOFT_WORKSPACE_DIR)
    root.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    folder = os.open(root, _FOLDER_FLAGS & ~os.O_NOFOLLOW)
    try:
        for name in names:
            folder = _enter(folder, name)
        yield folder
    finally:
        os.close(folder)


def _enter(folder: int, name: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(name, FOLDER_MODE, dir_fd=folder)
    try:
        inner = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
    except OSError as error:
        raise WorkspaceError(f"{name}: expected a folder, not a link ({error.strerror})") from None
    os.close(folder)
    return inner
