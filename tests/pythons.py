"""Run the pure suites with every supported Python of this machine: `make test-pythons`.

The version of `.venv` is left out: `make test` runs with it. Every other one gets a virtual
environment below `.venv-pythons/`, which is kept.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OLDEST = (3, 11)
NEWEST = (3, 14)
ROOT = Path(__file__).parents[1]
VENVS = ROOT / ".venv-pythons"
SUITES = (
    "tests/failsoft",
    "tests/diagnostics/analysis",
    "tests/diagnostics/ingest/otlp",
    "tests/diagnostics/ingest/schemas",
    "tests/diagnostics/web/charts",
)
REQUIREMENTS = ("requirements.txt", "requirements-local.txt", "requirements-dev.txt")
Version = tuple[int, int, int]


def candidates() -> Iterator[Path]:
    """Yield the interpreters on the path and those of pyenv."""
    for folder in os.get_exec_path():
        yield Path(folder) / "python3"
        yield from (Path(folder) / f"python3.{m}" for m in range(OLDEST[1], NEWEST[1] + 1))
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob("versions/*/bin/python3"))


def version_of(program: Path) -> Version | None:
    """Return the version of an interpreter that can make a virtual environment, or None."""
    code = "import ensurepip, sys, venv; print(*sys.version_info[:3])"
    done = subprocess.run([program, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    major, minor, micro = (int(word) for word in done.stdout.split())
    return major, minor, micro


def interpreters() -> dict[Version, Path]:
    """Return one interpreter for each supported version but this one, oldest first."""
    programs: dict[Version, Path] = {}
    for program in candidates():
        version = version_of(program) if program.is_file() else None
        if version and OLDEST <= version[:2] <= NEWEST:
            programs.setdefault(version, program)
    programs.pop(sys.version_info[:3], None)
    return dict(sorted(programs.items()))


def prepared(program: Path, version: Version) -> Path:
    """Return the Python of a virtual environment that has everything installed."""
    venv = VENVS / ".".join(map(str, version))
    python = venv / "bin" / "python"
    locks = [ROOT / name for name in REQUIREMENTS]
    stamp = venv / "installed"
    if stamp.is_file() and all(stamp.stat().st_mtime > lock.stat().st_mtime for lock in locks):
        return python
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([program, "-m", "venv", venv], check=True)
    pip = f"{python} -m pip --disable-pip-version-check -qq install --no-input --no-compile"
    wanted = [word for lock in locks for word in ("-r", str(lock))]
    subprocess.run([*pip.split(), "--no-deps", *wanted], check=True)
    stamp.touch()
    return python


def main() -> int:
    parser = argparse.ArgumentParser(prog="make test-pythons", description=__doc__)
    parser.add_argument("paths", nargs="*", default=SUITES, help="instead of the pure suites")
    parser.add_argument("--only", metavar="VERSION", help="such as 3.12.1")
    asked = parser.parse_args()
    failed = []
    for version, program in interpreters().items():
        name = ".".join(map(str, version))
        if asked.only not in {None, name}:
            continue
        print(f"== Python {name} ({program})", flush=True)  # noqa: T201
        python = prepared(program, version)
        pytest = f"{python} -m pytest -q -n {os.environ.get('WORKERS', 2)}".split()
        if subprocess.run([*pytest, *asked.paths], cwd=ROOT, check=False).returncode:
            failed.append(name)
    for name in failed:
        print(f"failed with Python {name}")  # noqa: T201
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
