"""The server offers the library as a wheel that pip installs without any registry."""

import hashlib
import os
import re
import subprocess
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client

import failsoft
from config.packages import SOURCES, build_wheel

NAME = f"failsoft-{failsoft.VERSION}-py3-none-any.whl"
OK, UNKNOWN, NOT_ALLOWED = 200, 404, 405


@pytest.fixture
def _empty(settings: Any, tmp_path: Path) -> None:
    settings.STATIC_ROOT = tmp_path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build the wheel once; return the folder of static files beside it."""
    folder = tmp_path_factory.mktemp("static")
    before, django_settings.STATIC_ROOT = django_settings.STATIC_ROOT, folder
    build_wheel()
    yield folder
    django_settings.STATIC_ROOT = before


@pytest.mark.usefixtures("_empty")
def test_before_static_files_are_collected_there_is_no_wheel() -> None:
    assert b"<a" not in Client().get("/packages/simple/failsoft/").content
    assert Client().get(f"/packages/{NAME}").status_code == UNKNOWN


@pytest.mark.slow
@pytest.mark.usefixtures("built")
def test_the_index_leads_to_the_wheel_and_says_its_checksum() -> None:
    assert '<a href="failsoft/">' in Client().get("/packages/simple/").content.decode()
    page = Client().get("/packages/simple/failsoft/").content.decode()
    ((target, told),) = re.findall(r'<a href="\.\./\.\./([^"#]+)#sha256=(\w+)">', page)
    answer = Client().get(f"/packages/{target}")
    assert (target, answer.status_code) == (NAME, OK)
    assert hashlib.sha256(answer.content).hexdigest() == told
    for other in ("failsoft-9.whl", "..%2fmanage.py", "%2e%2e", "simple"):
        assert Client().get(f"/packages/{other}").status_code in (UNKNOWN, 301)
    assert Client().post(f"/packages/{NAME}").status_code == NOT_ALLOWED


@pytest.mark.slow
def test_the_same_sources_make_the_same_wheel_and_an_old_one_goes(built: Path) -> None:
    (first,) = (built / "packages").iterdir()
    content = first.read_bytes()
    (built / "packages" / "failsoft-0.0.1-py3-none-any.whl").touch()
    umask = os.umask(0o077)
    try:
        assert build_wheel().read_bytes() == content
    finally:
        os.umask(umask)
    assert list((built / "packages").iterdir()) == [first]


@pytest.mark.slow
@pytest.mark.usefixtures("built")
@pytest.mark.django_db(transaction=True)
def test_pip_installs_from_the_server_alone(live_server: Any, tmp_path: Path) -> None:
    venv.create(tmp_path / "own", with_pip=True)
    pip = [str(tmp_path / "own/bin/python"), "-m", "pip", "--isolated", "--quiet", "install"]
    for source in (
        ("--index-url", f"{live_server.url}/packages/simple/", "failsoft"),
        ("--no-index", "--force-reinstall", f"{live_server.url}/packages/{NAME}"),
    ):
        subprocess.run([*pip, "--no-deps", *source], check=True)
        done = subprocess.run(
            [tmp_path / "own/bin/failsoft", "--version"],
            check=True,
            capture_output=True,
            text=True,
            # Its dependencies are those of this environment.
            env={"PYTHONPATH": str(Path(pytest.__file__).parents[1])},
            cwd=tmp_path,
        )
        assert done.stdout.strip() == failsoft.VERSION


@pytest.mark.integrations
@pytest.mark.usefixtures("built")
@pytest.mark.django_db(transaction=True)
def test_an_empty_environment_gets_the_rest_from_its_index(
    live_server: Any, tmp_path: Path
) -> None:
    venv.create(tmp_path / "own", with_pip=True)
    python = tmp_path / "own/bin/python"
    wheel = f"{live_server.url}/packages/{NAME}"
    subprocess.run([python, "-m", "pip", "--quiet", "install", wheel], check=True)
    code = "import failsoft; print(failsoft.recover(\"{'a': 1,}\").value, failsoft.__file__)"
    done = subprocess.run(
        [python, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.startswith(f"{{'a': 1}} {tmp_path}")


def test_the_build_gets_every_file_that_its_settings_name() -> None:
    text = (django_settings.BASE_DIR / "pyproject.toml").read_text(encoding="utf-8")
    readme = tomllib.loads(text)["project"].get("readme", SOURCES[0])
    assert readme in SOURCES
