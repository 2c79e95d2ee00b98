"""Decision files stay below their workspace, whatever stands on the way."""

import os
from pathlib import Path
from typing import Any

import pytest

from plans.core.completion.paths import PathRefusedError
from plans.workspaces import (
    UnreadableFileError,
    WorkspaceError,
    clear_decision_file,
    decode_decision,
    read_decision_file,
    workspace_path,
)

FILE = "loop/review.json"


@pytest.fixture
def space(settings: Any, tmp_path: Path) -> Path:
    """The folder of the workspace `one`."""
    settings.FAILSOFT_WORKSPACE_DIR = tmp_path / "spaces"
    return workspace_path("one")


def write(space: Path, text: str) -> Path:
    target = space / FILE
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


def test_a_left_over_is_cleared_and_the_way_is_made(space: Path) -> None:
    old = write(space, "PASS")
    place = clear_decision_file("one", FILE)

    assert place == old
    assert not old.exists()
    assert clear_decision_file("one", "a/b/c.json").parent.is_dir()


def test_s3_9_a_file_is_read_and_a_missing_one_is_none(space: Path) -> None:
    assert read_decision_file("one", FILE) is None
    write(space, "FAIL")
    assert read_decision_file("one", FILE) == "FAIL"


def test_s3_17_the_age_of_a_file_does_not_matter(space: Path) -> None:
    target = write(space, "FAIL")
    os.utime(target, (0, 0))

    assert read_decision_file("one", FILE) == "FAIL"


def test_a_link_in_place_of_the_file_is_not_followed(space: Path) -> None:
    outside = space.parent.parent / "secret"
    outside.write_text("PASS", encoding="utf-8")
    write(space, "").unlink()
    (space / FILE).symlink_to(outside)

    with pytest.raises(UnreadableFileError):
        read_decision_file("one", FILE)
    clear_decision_file("one", FILE)
    assert outside.read_text(encoding="utf-8") == "PASS"


def test_a_link_in_place_of_a_folder_is_not_followed(space: Path) -> None:
    outside = space.parent.parent / "outside"
    outside.mkdir()
    (outside / "review.json").write_text("PASS", encoding="utf-8")
    (space / "loop").symlink_to(outside)

    with pytest.raises(UnreadableFileError):
        read_decision_file("one", FILE)
    with pytest.raises(WorkspaceError):
        clear_decision_file("one", FILE)
    assert (outside / "review.json").exists()


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x"])
def test_a_path_that_leads_out_is_refused(space: Path, path: str) -> None:
    with pytest.raises(PathRefusedError):
        clear_decision_file("one", path)
    with pytest.raises(PathRefusedError):
        read_decision_file("one", path)


def test_what_is_no_regular_file_is_not_read(space: Path) -> None:
    write(space, "").unlink()
    os.mkfifo(space / FILE)
    with pytest.raises(UnreadableFileError):
        read_decision_file("one", FILE)
    (space / "folder").mkdir()
    with pytest.raises(UnreadableFileError):
        read_decision_file("one", "folder")
    with pytest.raises(WorkspaceError):
        clear_decision_file("one", "folder")


def test_a_file_that_is_too_large_is_not_read(space: Path) -> None:
    write(space, "x" * (1024 * 1024 + 1))

    with pytest.raises(UnreadableFileError):
        read_decision_file("one", FILE)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig"])
def test_a_file_of_windows_is_read_too(encoding: str) -> None:
    assert decode_decision("PASS".encode(encoding)).lstrip("\ufeff") == "PASS"


def test_no_bytes_are_too_odd() -> None:
    assert "\ufffd" in decode_decision(b"\xff\xfa\x00PASS")
