"""What the container image copies is enough to run the product.

Only COPY is replayed, with the packages of this environment; apt, useradd and pip are not run.
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


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Replay the COPY lines in an empty folder."""
    for source, target in COPY.findall(DOCKERFILE.read_text(encoding="utf-8")):
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, tmp_path / target)
        else:
            shutil.copy(ROOT / source, tmp_path / target)
    return tmp_path


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
