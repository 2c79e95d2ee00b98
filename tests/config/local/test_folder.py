import os
import shutil
import socket
from collections import namedtuple
from pathlib import Path

import pytest

from config import runtime
from config.local.__main__ import prepare
from config.local.folder import (
    SOCKET_PATH_LIMIT,
    AlreadyRunningError,
    Folder,
    FolderError,
    is_free,
    prepare_folder,
    prepare_sockets,
    read_keys,
    steady_port,
    take_lock,
)
from config.local.stack import Options
from tests.faults.stack import free_port


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(FolderError, match=r"cannot write to .*; choose another"):
        prepare_folder(file / "data")


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 7 << 20))
    with pytest.raises(FolderError, match="only 7 MiB free"):
        prepare_folder(tmp_path / "data")


def test_the_second_lock_names_the_first_holder(tmp_path: Path) -> None:
    folder = prepare_folder(tmp_path)
    first = take_lock(folder, "http://127.0.0.1:8000")
    with pytest.raises(AlreadyRunningError, match=f":8000, pid {os.getpid()} "):
        take_lock(folder, "http://127.0.0.1:9000")
    os.close(first)
    os.close(take_lock(folder, "http://127.0.0.1:9000"))


@pytest.mark.parametrize("depth", [1, 10])
def test_sockets_fit_however_deep_the_folder_lies(tmp_path: Path, depth: int) -> None:
    folder = prepare_folder(tmp_path.joinpath(*["a_long_name_of_a_folder"] * depth))
    prepare_sockets(folder)
    path = folder.sockets / "pg" / ".s.PGSQL.5432"
    assert len(os.fsencode(path)) <= SOCKET_PATH_LIMIT
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    assert folder.sockets.stat().st_mode & 0o777 == 0o700
    prepare_sockets(folder)
    assert not path.exists()
    shutil.rmtree(folder.sockets)


def test_a_socket_folder_open_to_others_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.sockets.mkdir(mode=0o777)
    folder.sockets.chmod(0o777)
    with pytest.raises(FolderError, match="belongs to another user"):
        prepare_sockets(folder)


def test_keys_are_made_once_for_the_owner_alone(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert read_keys(folder) == read_keys(folder)
    assert (tmp_path / "keys.json").stat().st_mode & 0o777 == 0o600


def test_a_port_stays_the_same_while_it_is_free(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    port = steady_port(folder, "model")
    assert steady_port(folder, "model") == port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        assert not is_free(port)
        assert steady_port(folder, "model") != port


def test_keys_that_a_killed_start_left_half_written_are_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = prepare_folder(tmp_path)

    def killed(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr("json.dump", killed)
        patched.setattr("json.dumps", killed)
        with pytest.raises(SystemExit):
            read_keys(folder)
    keys = read_keys(folder)
    assert set(keys) == {"secret_key", "working_key", "model_key"}
    assert read_keys(folder) == keys


def test_a_checkout_that_cannot_be_written_only_forgets_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "checkout").touch()
    monkeypatch.setattr(runtime, "POINTER", tmp_path / "checkout" / ".local" / "data-dir")
    data = tmp_path / "my data"
    options = Options(port=free_port(), data=data, remember=True, model=False, demo=False)
    _, lock = prepare(options)
    os.close(lock)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"give commands FAILSOFT_DATA_DIR='{data}'")
