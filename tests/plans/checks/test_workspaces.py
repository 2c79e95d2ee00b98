"""Decision files stay below their workspace, whatever stands on the way."""

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from failsoft.completion import CheckDecision, UndecidedCause, resolve_completion_decision
from failsoft.completion.specification import PathRefusedError
from plans.checks.workspaces import (
    UnreadableFileError,
    WorkspaceError,
    _part,
    clear_decision_file,
    decode_decision,
    part_by_project,
    read_decision_file,
    workspace_of,
    workspace_path,
)

FILE = "loop/review.json"
ONE = workspace_of(7, "one")


@pytest.fixture
def space(settings: Any, tmp_path: Path) -> Path:
    """The folder of the workspace `one`."""
    settings.FAILSOFT_WORKSPACE_DIR = tmp_path / "spaces"
    return workspace_path(ONE)


def write(space: Path, text: str) -> Path:
    target = space / FILE
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


def test_a_left_over_is_cleared_and_the_way_is_made(space: Path) -> None:
    old = write(space, "PASS")
    place = clear_decision_file(ONE, FILE)

    assert place == old
    assert not old.exists()
    assert clear_decision_file(ONE, "a/b/c.json").parent.is_dir()


def test_s3_9_a_file_is_read_and_a_missing_one_is_none(space: Path) -> None:
    assert read_decision_file(ONE, FILE) is None
    write(space, "FAIL")
    assert read_decision_file(ONE, FILE) == "FAIL"


@pytest.mark.parametrize(
    ("check_id", "mtime", "decision", "cause"),
    [
        ("c1", 0, CheckDecision.COMPLETE, None),
        ("c1", 4e9, CheckDecision.COMPLETE, None),
        ("c0", 0, CheckDecision.INCOMPLETE, UndecidedCause.CHECK_ID_MISMATCH),
        ("c0", 4e9, CheckDecision.INCOMPLETE, UndecidedCause.CHECK_ID_MISMATCH),
    ],
)
def test_s3_17_the_id_of_a_file_decides_and_never_its_age(
    space: Path, check_id: str, mtime: float, decision: CheckDecision, cause: UndecidedCause | None
) -> None:
    target = write(space, json.dumps({"decision": "complete", "check_id": check_id}))
    os.utime(target, (mtime, mtime))

    verdict = resolve_completion_decision(read_decision_file(ONE, FILE), "", "c1")

    assert (verdict.decision, verdict.cause) == (decision, cause)
    assert verdict.check_id_match is (cause is None)


def test_a_link_in_place_of_the_file_is_not_followed(space: Path) -> None:
    outside = space.parent.parent / "secret"
    outside.write_text("PASS", encoding="utf-8")
    write(space, "").unlink()
    (space / FILE).symlink_to(outside)

    with pytest.raises(UnreadableFileError):
        read_decision_file(ONE, FILE)
    clear_decision_file(ONE, FILE)
    assert outside.read_text(encoding="utf-8") == "PASS"


def test_a_link_in_place_of_a_folder_is_not_followed(space: Path) -> None:
    outside = space.parent.parent / "outside"
    outside.mkdir()
    (outside / "review.json").write_text("PASS", encoding="utf-8")
    (space / "loop").symlink_to(outside)

    with pytest.raises(UnreadableFileError):
        read_decision_file(ONE, FILE)
    with pytest.raises(WorkspaceError):
        clear_decision_file(ONE, FILE)
    assert (outside / "review.json").exists()


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x"])
def test_a_path_that_leads_out_is_refused(space: Path, path: str) -> None:
    with pytest.raises(PathRefusedError):
        clear_decision_file(ONE, path)
    with pytest.raises(PathRefusedError):
        read_decision_file(ONE, path)


def test_what_is_no_regular_file_is_not_read(space: Path) -> None:
    write(space, "").unlink()
    os.mkfifo(space / FILE)
    with pytest.raises(UnreadableFileError):
        read_decision_file(ONE, FILE)
    (space / "folder").mkdir()
    with pytest.raises(UnreadableFileError):
        read_decision_file(ONE, "folder")
    with pytest.raises(WorkspaceError):
        clear_decision_file(ONE, "folder")


def test_a_file_that_is_too_large_is_not_read(space: Path) -> None:
    write(space, "x" * (1024 * 1024 + 1))

    with pytest.raises(UnreadableFileError):
        read_decision_file(ONE, FILE)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig"])
def test_a_file_of_windows_is_read_too(encoding: str) -> None:
    assert decode_decision("PASS".encode(encoding)).lstrip("\ufeff") == "PASS"


def test_no_bytes_are_too_odd() -> None:
    assert "\ufffd" in decode_decision(b"\xff\xfa\x00PASS")


def test_s20_projects_that_name_the_same_workspace_share_nothing(space: Path) -> None:
    target = write(space, "PASS")
    other = workspace_of(8, "one")

    assert read_decision_file(other, FILE) is None
    assert clear_decision_file(other, FILE) != target
    assert target.exists()


@pytest.mark.parametrize("path", ["../7/one", "/7/one", "..", "", "a//b", "~/one"])
def test_s20_no_path_of_a_workspace_leads_to_another_project(path: str) -> None:
    with pytest.raises(PathRefusedError):
        workspace_of(8, path)


def test_a_link_in_place_of_a_projects_folder_is_not_followed(space: Path) -> None:
    (space.parent.parent / "8").symlink_to(space.parent)

    with pytest.raises(WorkspaceError):
        workspace_path(workspace_of(8, "one"))


@pytest.fixture
def earlier(settings: Any, tmp_path: Path) -> Path:
    """What an earlier release left: folders of workspaces directly in the root."""
    root: Path = tmp_path / "spaces"
    settings.FAILSOFT_WORKSPACE_DIR = root
    for name in ("support", "7", "unknown"):
        (root / name).mkdir(parents=True)
        (root / name / "notes.txt").write_text(name, encoding="utf-8")
    return root


def files_below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*.txt"))


def test_workspaces_of_earlier_releases_move_to_their_projects_once(earlier: Path) -> None:
    def owners_of(names: Collection[str]) -> dict[str, int]:
        owners = {"support": 7, "7": 8}
        return {name: owners[name] for name in names if name in owners}

    for _ in range(2):
        part_by_project(owners_of)
        _part.cache_clear()

        assert files_below(earlier) == [
            ".earlier/unknown/notes.txt",
            "7/support/notes.txt",
            "8/7/notes.txt",
        ]


def test_a_move_that_was_cut_off_is_finished_by_the_next(earlier: Path) -> None:
    def die(names: Collection[str]) -> dict[str, int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        part_by_project(die)
    workspace_path(workspace_of(7, "new"))
    part_by_project(lambda names: dict.fromkeys(names, 7))

    assert files_below(earlier) == ["7/7/notes.txt", "7/support/notes.txt", "7/unknown/notes.txt"]
    assert (earlier / "7/new").is_dir()
