"""Folders that checks work in, and the decision files in them (s3, X-13).

Every name on the way is opened by itself and without following links, so that neither a
symbolic link nor a race of renames leads out of the workspace.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings

from plans.core.completion.paths import read_relative_path

MAX_DECISION_BYTES = 1024 * 1024
FOLDER_MODE = 0o700
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class WorkspaceError(Exception):
    """the workspace or the decision file in it cannot be used"""


class UnreadableFileError(Exception):
    """there is a decision file, and it cannot be read"""


def workspace_path(workspace: str) -> Path:
    """Return the folder of this relative path below FAILSOFT_WORKSPACE_DIR, made if needed."""
    with _folder(read_relative_path(workspace)):
        return Path(settings.FAILSOFT_WORKSPACE_DIR, *read_relative_path(workspace))


def clear_decision_file(workspace: str, decision_file: str) -> Path:
    """Remove what an earlier check left, make the way to it, return where it belongs.

    WorkspaceError when it cannot be removed: a left-over must never decide.
    """
    *folders, name = read_relative_path(decision_file)
    place = (*read_relative_path(workspace), *folders)
    with _folder(place) as folder:
        try:
            os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise WorkspaceError(f"{decision_file}: {error.strerror}") from None
    return Path(settings.FAILSOFT_WORKSPACE_DIR, *place, name)


def read_decision_file(workspace: str, decision_file: str) -> str | None:
    """Return the text of the decision file, None when there is none.

    UnreadableFileError for a link, a pipe, a folder, a file of more than 1 MiB.
    """
    *folders, name = read_relative_path(decision_file)
    try:
        with _folder((*read_relative_path(workspace), *folders)) as folder:
            raw = _read(name, folder)
    except FileNotFoundError:
        return None
    except (OSError, WorkspaceError) as error:
        raise UnreadableFileError(str(error)) from None
    return decode_decision(raw)


def decode_decision(raw: bytes) -> str:
    """The text of a decision file: UTF-8, or UTF-16 where it says so by its first bytes."""
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
    """Open a folder below the root by its names, making those that are missing."""
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
        raise WorkspaceError(
            f"{name}: expected a folder, not a link ({error.strerror})"
        ) from None
    os.close(folder)
    return inner
