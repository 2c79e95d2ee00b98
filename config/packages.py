"""The library as a wheel: built when static files are collected, served below /packages/.

An agent beside the server installs `failsoft` from it, without any registry knowing the name.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import require_safe

NAME = "failsoft"
# What the build reads; of a setting in there that names another file, a test would tell.
SOURCES = ("pyproject.toml", "LICENSE", "failsoft")
BUILD = "from setuptools import build_meta; build_meta.build_wheel('built')"
# The first moment that a zip file knows: the same sources make the same bytes.
EPOCH = "315532800"
PAGE = "<!DOCTYPE html>\n<title>{}</title>\n{}\n"


def build_wheel() -> Path:
    """Build the wheel of the library, beside the static files; replaces the last one."""
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        _copy_sources(Path(name))
        subprocess.run(  # noqa: S603 - no input of others
            [sys.executable, "-c", BUILD],
            cwd=name,
            env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH},
            umask=0o022,
            check=True,
            capture_output=True,
        )
        (built,) = Path(name, "built").glob("*.whl")
        wheel = folder / built.name
        # In one step: others may be reading, or building too.
        waiting = folder / f".{built.name}.{os.getpid()}"
        shutil.copyfile(built, waiting)
        waiting.replace(wheel)
    for old in set(folder.glob("*.whl")) - {wheel}:
        old.unlink()
    return wheel


def _copy_sources(folder: Path) -> None:
    """Copy what the build reads, with equal modes whatever the checkout's are."""
    for name in SOURCES:
        source = settings.BASE_DIR / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / name, ignore=ignored, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(source, folder / name)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _folder() -> Path:
    return Path(settings.STATIC_ROOT) / "packages"


@require_safe
def packages(request: HttpRequest) -> HttpResponse:
    """List the one project of the index (PEP 503)."""
    return HttpResponse(format_html(PAGE, "Packages", format_html('<a href="{0}/">{0}</a>', NAME)))


@require_safe
def package(request: HttpRequest) -> HttpResponse:
    """List the files of the library, each with its checksum (PEP 503)."""
    links = format_html_join(
        "\n",
        '<a href="../../{0}#sha256={1}">{0}</a>',
        ((file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in _wheels()),
    )
    return HttpResponse(format_html(PAGE, NAME, links))


@require_safe
def wheel(request: HttpRequest, name: str) -> HttpResponse:
    for file in _wheels():
        if file.name == name:
            return HttpResponse(file.read_bytes(), content_type="application/octet-stream")
    raise Http404


def _wheels() -> list[Path]:
    return sorted(_folder().glob("*.whl"))
