"""References to secrets: which files may be read, and how much of them (S26)."""

import os
from pathlib import Path
from typing import Any

import pytest

from diagnostics.outbound.credentials import MAX_FILE_BYTES, CredentialError, read_credential


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    settings.FAILSOFT_SECRET_DIRS = [str(folder)]
    return folder


def test_a_file_in_the_folder_of_secrets_is_read(folder: Path) -> None:
    (folder / "hook").write_text("https://a.example/x\n", encoding="utf-8")
    assert read_credential(f"file:{folder}/hook", "channel") == "https://a.example/x"


def test_a_link_may_lead_to_another_file_of_the_folder(folder: Path) -> None:
    (folder / "..data").mkdir()
    (folder / "..data" / "hook").write_text("https://a.example/x", encoding="utf-8")
    (folder / "hook").symlink_to("..data/hook")
    assert read_credential(f"file:{folder}/hook", "channel") == "https://a.example/x"


def test_a_folder_of_secrets_may_be_a_link(folder: Path, settings: Any) -> None:
    (folder / "hook").write_text("https://a.example/x", encoding="utf-8")
    (folder.parent / "link").symlink_to(folder)
    settings.FAILSOFT_SECRET_DIRS = [str(folder.parent / "link")]
    reference = f"file:{folder.parent}/link/hook"
    assert read_credential(reference, "channel") == "https://a.example/x"


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "link",
        "secrets/../../outside",
        "linked/outside",
        "/etc/hostname",
        "/proc/self/environ",
        "/dev/zero",
        ".",
    ],
)
def test_a_file_elsewhere_is_not_read(folder: Path, name: str) -> None:
    (folder.parent / "outside").write_text("https://a.example/x", encoding="utf-8")
    (folder / "link").symlink_to("../outside")
    (folder / "linked").symlink_to(folder.parent)
    with pytest.raises(CredentialError, match="must be in"):
        read_credential(f"file:{folder / name}", "channel")


def test_a_pipe_or_a_folder_is_no_secret_and_holds_nobody_up(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "below").mkdir()
    with pytest.raises(CredentialError, match="not a regular file"):
        read_credential(f"file:{folder}/pipe", "channel")
    with pytest.raises(CredentialError):
        read_credential(f"file:{folder}/below", "channel")


def test_a_large_file_is_refused_and_read_no_further_than_the_bound(folder: Path) -> None:
    # Whatever is read is masked from then on: no text of another test may hold it.
    (folder / "most").write_bytes(os.urandom(MAX_FILE_BYTES // 2).hex().encode())
    with (folder / "large").open("wb") as file:
        file.truncate(2**40)  # sparse: nothing lies on the disk
    assert len(read_credential(f"file:{folder}/most", "channel")) == MAX_FILE_BYTES
    with pytest.raises(CredentialError, match="more than 65536 bytes"):
        read_credential(f"file:{folder}/large", "channel")


def test_a_file_that_is_missing_or_no_text_is_not_set(folder: Path) -> None:
    (folder / "binary").write_bytes(b"\xff\xfe")
    for name in ("binary", "missing"):
        with pytest.raises(CredentialError, match="is not set"):
            read_credential(f"file:{folder}/{name}", "channel")
