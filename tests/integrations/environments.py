"""An environment for each family, made once from its lock file: `.venv-integrations/`."""

import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from tests.integrations.clients import ENVIRONMENTS, FAMILIES

OPTIONS = ("--disable-pip-version-check", "--quiet", "--no-input", "--no-deps", "--require-hashes")


def names_of_families() -> list[str]:
    """Return every folder with something to install, those of generated clients included."""
    paths = [*FAMILIES.glob("*/requirements.in"), *FAMILIES.glob("*/package.json")]
    return sorted(path.parent.name for path in paths)


def prepare(family: str) -> None:
    """Install what a family's lock file names, unless that was done before."""
    folder, lock = ENVIRONMENTS / family, _lock_of(family)
    mark = folder / "installed"
    digest = sha256(lock.read_bytes()).hexdigest()
    if mark.exists() and mark.read_text() == digest:
        return
    if lock.suffix == ".json":
        _install_node(folder, lock)
    else:
        _install_python(folder, lock)
    mark.write_text(digest)


def _lock_of(family: str) -> Path:
    node = FAMILIES / family / "package-lock.json"
    return node if node.exists() else FAMILIES / family / "requirements.txt"


def _install_node(folder: Path, lock: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in (lock.name, "package.json"):
        shutil.copy(lock.parent / name, folder)
    subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--silent"], cwd=folder, check=True
    )


def _install_python(folder: Path, lock: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install"]
    subprocess.run([*pip, *OPTIONS, "-r", str(lock)], check=True)
