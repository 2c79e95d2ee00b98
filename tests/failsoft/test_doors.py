"""The public doors of the library: what their docstrings show, and that they need no server."""

import doctest
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import mypy.api
import pytest

import failsoft

ROOMS = ("actions", "completion", "parsing", "plans", "redaction", "retry")
TOP = Path(__file__).parents[2]
SERVER = ("celery", "django", "httpx", "kombu", "openai", "psycopg", "rest_framework", "structlog")
IMPORT_ALL = f"""
import pkgutil, sys
for name in {SERVER}:
    sys.modules[name] = None  # an import of it raises
import failsoft
for module in pkgutil.walk_packages(failsoft.__path__, "failsoft."):
    __import__(module.name)
for name in failsoft.__all__:
    getattr(failsoft, name)
"""


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_the_examples_of_a_door_hold(room: str) -> None:
    module = import_module(f"failsoft.{room}".removesuffix("."))
    done = doctest.testmod(module, raise_on_error=True)
    assert done.attempted > 0


def test_the_library_imports_without_the_server() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], cwd=TOP, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_examples_of_the_page_satisfy_a_strict_type_checker(tmp_path: Path) -> None:
    page = (TOP / "docs" / "library.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert examples
    for number, example in enumerate(examples):
        (tmp_path / f"example_{number}.py").write_text(example, encoding="utf-8")
    report, errors, code = mypy.api.run(["--strict", "--config-file=", str(tmp_path)])
    assert (code, errors) == (0, ""), report


def test_the_top_door_loads_rooms_at_first_use() -> None:
    code = "import sys, failsoft; print(*(m for m in sys.modules if m.startswith('failsoft.')))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_the_top_door_lists_its_names_before_they_are_used() -> None:
    assert {"VERSION", *failsoft.__all__} <= {*dir(failsoft)}
    failsoft.flush()  # nothing is sent


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        failsoft.no_such_name  # noqa: B018 - the lookup is what is tried


def test_the_wheel_packs_every_data_file_of_the_library() -> None:
    settings = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    packed = settings["tool"]["setuptools"]["package-data"]
    data = [
        path
        for path in (TOP / "failsoft").rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    ]
    assert data
    for path in data:
        room = ".".join(path.parent.relative_to(TOP).parts)
        assert any(path.match(pattern) for pattern in packed.get(room, ())), path
