"""`make release`: equal wherever it is made, complete, and the server starts from its archive."""

import json
import os
import shutil
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

import failsoft
from tests.faults.stack import ROOT, running
from tests.release import ReleaseError, check_release, commit_time, release

VERSION = failsoft.VERSION
BARE = ("--no-model", "--no-demo")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of the files of this one, as one commit."""
    made = tmp_path / "checkout"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, made / name)
    git(made, "init", "--quiet")
    commit(made)
    return made


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=ann", "-c", "user.email=ann@example.test", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")


@pytest.mark.slow
def test_a_release_is_equal_byte_for_byte_and_its_checksums_hold(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    first = release(checkout, tmp_path / "first", VERSION, commit_time(checkout))
    git(checkout, "commit", "--quiet", "--amend", "--message", "later", "--date", "2030-01-01")
    umask = os.umask(0o077)
    try:
        second = release(checkout, tmp_path / "second", VERSION, commit_time(checkout))
    finally:
        os.umask(umask)
    assert [one.name for one in first] == [
        f"failsoft-{VERSION}-py3-none-any.whl",
        f"failsoft-{VERSION}.tar.gz",
        f"failsoft-server-{VERSION}.cdx.json",
        f"failsoft-server-{VERSION}.tar.gz",
        "SHA256SUMS",
    ]
    assert [one.read_bytes() for one in first] == [one.read_bytes() for one in second]
    for line in first[-1].read_text().splitlines():
        told, name = line.split("  ")
        assert told == sha256((tmp_path / "first" / name).read_bytes()).hexdigest()
    parts = json.loads(first[2].read_text())["components"]
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    assert len(parts) == len([line for line in lines if line[:1].isalpha()])
    names = names_in(first[3])
    assert "tests" not in {Path(name).parts[1] for name in names[1:]}
    assert f"failsoft-server-{VERSION}/site/docs/index.html" in names


def names_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as opened:
        return opened.getnames()


@pytest.mark.slow
def test_nothing_is_released_that_is_not_committed_or_not_in_the_changelog(
    checkout: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(ReleaseError, match=r"CHANGELOG.md has no section 9\.9\.9"):
        check_release(checkout, out, "9.9.9")
    changelog = checkout / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## Unreleased", "## 9.9.9", 1))
    with pytest.raises(ReleaseError, match="not committed"):
        check_release(checkout, out, "9.9.9")
    commit(checkout)
    check_release(checkout, out, "9.9.9")
    out.mkdir()
    with pytest.raises(ReleaseError, match="exists"):
        check_release(checkout, out, "9.9.9")


@pytest.mark.faults
def test_the_archive_of_the_server_starts_in_an_empty_folder_without_git(
    checkout: Path, tmp_path: Path
) -> None:
    made = release(checkout, tmp_path / "made", VERSION, commit_time(checkout))
    with tarfile.open(made[3]) as archive:
        archive.extractall(tmp_path / "empty", filter="data")
    server = tmp_path / "empty" / f"failsoft-server-{VERSION}"
    with running(tmp_path / "data", *BARE, lead=("env", f"--chdir={server}")) as stack:
        assert stack.is_ready()
        assert str(server) in {str(Path(f"/proc/{pid}/cwd").readlink()) for pid in stack.pids()}
