"""`make release`: the files of a release in `dist/`, from the last commit.

The library as wheel and source, the server as an archive, the packages of the server as a bill of
materials (CycloneDX), and SHA256SUMS. They are equal byte for byte wherever they are made.
"""

import gzip
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

import failsoft

ROOT = Path(__file__).resolve().parent.parent
GENERATOR = ROOT / ".venv-docs" / "bin" / "python"
NOT_SERVED = (":!tests", ":!bench", ":!.ci", ":!requirements-dev.*")
BACKEND = "import sys; from setuptools import build_meta; build_meta.{hook}(sys.argv[1])"
UMASK = "tar.umask=0022"


class ReleaseError(Exception):
    """Why there is nothing to release."""


def _git(root: Path, *words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True).stdout


def check_release(root: Path, out: Path, version: str) -> None:
    """Check that the last commit can be released into a folder; ReleaseError."""
    if out.exists():
        raise ReleaseError(f"{out} exists")
    if _git(root, "status", "--porcelain"):
        raise ReleaseError("there are changes that are not committed")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)}( |$)", changelog, re.MULTILINE):
        raise ReleaseError(f"CHANGELOG.md has no section {version}")


def commit_time(root: Path) -> int:
    """Return when the last commit was made; SOURCE_DATE_EPOCH takes precedence."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _git(root, "log", "-1", "--format=%ct"))


def _pack(source: tarfile.TarFile, target: Path, epoch: int) -> None:
    """Write the members of an archive in the order of their names, without owners and times."""
    with (
        target.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for member in sorted(source.getmembers(), key=lambda one: one.name):
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime, member.pax_headers = epoch, {}
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            archive.addfile(member, source.extractfile(member) if member.isfile() else None)


def _library(tree: Path, out: Path, epoch: int) -> None:
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    for hook in ("build_wheel", "build_sdist"):
        build = [sys.executable, "-c", BACKEND.format(hook=hook), str(out)]
        subprocess.run(build, cwd=tree, env=env, umask=0o022, check=True, capture_output=True)
    (source,) = out.glob("failsoft-*.tar.gz")
    with tarfile.open(fileobj=BytesIO(source.read_bytes())) as archive:
        _pack(archive, source, epoch)


def _server(root: Path, tree: Path, out: Path, name: str, epoch: int) -> None:
    """Pack the server with its documentation."""
    words = ("archive", "--format=tar", f"--prefix={name}/", "HEAD", ".", *NOT_SERVED)
    files = BytesIO(_git(root, "-c", UMASK, *words))
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    build = [str(GENERATOR), "docs/build.py", "site/docs"]
    subprocess.run(build, cwd=tree, env=env, umask=0o022, check=True, capture_output=True)
    with tarfile.open(fileobj=files, mode="a") as archive:
        archive.add(tree / "site", f"{name}/site")
    files.seek(0)
    with tarfile.open(fileobj=files) as archive:
        _pack(archive, out / f"{name}.tar.gz", epoch)


def _materials(root: Path, target: Path) -> None:
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible"]
    command += ["--pyproject", "pyproject.toml", "--output-file", str(target), "requirements.txt"]
    subprocess.run(command, cwd=root, check=True, capture_output=True)


def release(root: Path, out: Path, version: str, epoch: int) -> list[Path]:
    """Write the files of a release of the last commit into an empty folder; return them."""
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = _git(root, "-c", UMASK, "archive", "--format=tar", "HEAD")
        with tarfile.open(fileobj=BytesIO(tree)) as archive:
            archive.extractall(folder, filter="data")
        _library(Path(folder), out, epoch)
        _server(root, Path(folder), out, f"failsoft-server-{version}", epoch)
    _materials(root, out / f"failsoft-server-{version}.cdx.json")
    files = sorted(out.iterdir())
    sums = [f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in files]
    (out / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    return [*files, out / "SHA256SUMS"]


def main() -> int:
    """Make a release; the exit code."""
    out = ROOT / "dist" / failsoft.VERSION
    try:
        check_release(ROOT, out, failsoft.VERSION)
    except ReleaseError as error:
        sys.stderr.write(f"failsoft: no release of {failsoft.VERSION}: {error}\n")
        return 1
    for path in release(ROOT, out, failsoft.VERSION, commit_time(ROOT)):
        sys.stdout.write(f"{path.stat().st_size:>12,}  {path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
