"""What the container image copies is enough to run the product, and to build its documentation.

Only COPY is replayed, with the packages of this machine; apt, useradd and pip are not run.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checking import ROOT, production_env

COPY = re.compile(r"^COPY (\S+) (\S+)$", re.MULTILINE)
DOCKERFILE = ROOT / "docs" / "deployment" / "Dockerfile"


STAGES = DOCKERFILE.read_text(encoding="utf-8").split("\nFROM ")[1:]


def replay(stage: str, folder: Path) -> Path:
    """Replay the COPY lines of a stage in an empty folder."""
    for source, target in COPY.findall(stage):
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, folder / target)
        else:
            shutil.copy(ROOT / source, folder / target)
    return folder


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The files of the image, but the documentation."""
    return replay(STAGES[-1], tmp_path)


@pytest.mark.slow
def test_the_image_has_every_file_that_its_documentation_needs(tmp_path: Path) -> None:
    folder = replay(STAGES[0], tmp_path)
    command = re.findall(r"^RUN python (.+)$", STAGES[0], re.MULTILINE)[-1].split()
    subprocess.run([ROOT / ".venv-docs/bin/python", *command], cwd=folder, check=True)
    built, image_path = re.findall(
        r"^COPY --from=\w+ /build/(\S+) (\S+)$", STAGES[1], re.MULTILINE
    )[0]
    assert (folder / built / "docs/index.html").is_file()
    assert image_path == "site"


@pytest.mark.slow
@pytest.mark.parametrize("command", [["collectstatic", "--no-input"], ["check"]])
def test_the_image_has_every_file_that_its_commands_need(image: Path, command: list[str]) -> None:
    own = re.compile(r"FAILSOFT_|DATABASE_URL|BROKER_URL|DJANGO_")
    kept = {name: value for name, value in os.environ.items() if not own.match(name)}
    # As in the image: static files are collected before there are keys and a database.
    keys = {} if command[0] == "collectstatic" else production_env()
    done = subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=image,
        env={
            **kept,
            **keys,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "FAILSOFT_DATA_DIR": str(image / "data"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
