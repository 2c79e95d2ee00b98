"""The house as a whole: what lies at the top, and which packages carry it."""

import ast
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from diagnostics.accounts.models import Project
from tests.console import make_member

TOP = Path(__file__).resolve().parent.parent
APPS = ("agents", "config", "diagnostics", "failsoft", "plans")

CARRIERS = {
    "django": "django",
    "djangorestframework": "rest_framework",
    "celery": "celery",
    "psycopg": "psycopg",
    "pydantic": "pydantic",
    "django-htmx": "django_htmx",
}


def named_in(requirements: str) -> set[str]:
    lines = (TOP / requirements).read_text(encoding="utf-8").splitlines()
    names = (re.match(r"[a-z0-9][a-z0-9._-]*", line.lower()) for line in lines)
    return {name[0] for name in names if name}


@pytest.mark.slow
@pytest.mark.parametrize("package", CARRIERS)
def test_m_1_the_named_packages_carry_it(package: str) -> None:
    assert package in named_in("requirements.in")
    files = (path for app in APPS for path in (TOP / app).rglob("*.py"))
    assert any(CARRIERS[package] in imports_of(path) for path in files)


def imports_of(path: Path) -> set[str]:
    """Give the packages that a module really imports: words in comments do not count."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = [a.name for node in nodes if isinstance(node, ast.Import) for a in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def test_m_1_pages_are_served_with_django_htmx(db: None, client: Client) -> None:
    assert "django_htmx.middleware.HtmxMiddleware" in settings.MIDDLEWARE
    client.force_login(make_member(Project.objects.create(slug="p", name="P")))
    page = client.get("/").content.decode()
    assert re.search(r'<script src="[^"]*htmx[^"]*\.js"', page)


def test_m_1_pytest_django_carries_the_tests(pytestconfig: pytest.Config) -> None:
    assert "pytest-django" in named_in("requirements-dev.in")
    assert pytestconfig.pluginmanager.hasplugin("django")


@pytest.mark.parametrize(
    "name",
    [
        "manage.py",
        "diagnostics",
        "agents",
        "plans",
        "templates",
        "static",
        "tests",
        "requirements.txt",
    ],
)
def test_m_2_top_level_has_what_it_must(name: str) -> None:
    assert (TOP / name).exists()


@pytest.mark.parametrize(
    "name",
    [
        "requirements.txt",
        "requirements-docs.txt",
        "requirements-local.txt",
        "requirements-model.txt",
    ],
)
def test_every_installed_package_is_pinned_with_a_hash(name: str) -> None:
    text = (TOP / name).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if re.match(r"[a-z0-9]", line, re.IGNORECASE)]
    assert lines
    assert [line[:60] for line in lines if "--hash=sha256:" not in line] == []
    assert [line[:60] for line in lines if not re.match(r"\S+==\S+", line)] == []


@pytest.mark.parametrize("document", ["dependencies.md"])
def test_every_direct_dependency_is_explained(document: str) -> None:
    text = (TOP / "docs" / document).read_text(encoding="utf-8").lower()
    files = ("requirements", "requirements-docs", "requirements-local", "requirements-model")
    direct = {name for file in files for name in named_in(f"{file}.in")}
    assert {name for name in direct if name.partition("[")[0] not in text} == set()
