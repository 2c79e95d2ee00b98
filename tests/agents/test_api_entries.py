"""GET /api/v1/entries."""

from typing import Any

import pytest

from diagnostics.accounts.models import Project
from tests.agents.actions.test_applying import make_entry
from tests.agents.conftest import Api


def listed(api: Api, **query: str) -> list[str]:
    """The first three characters of the ids of a page."""
    answer = api.get("entries", **query)
    assert answer.status_code == 200
    return [item["id"][:3] for item in answer.json()["items"]]


@pytest.fixture
def entries(project: Project) -> None:
    """Five entries, and one of another project."""
    rows: list[tuple[str, dict[str, Any]]] = [
        ("aaa", {}),
        ("bbb", {"priority": 5}),
        ("ccc", {"priority": 1, "category": "todo"}),
        ("ddd", {"priority": 3, "status": "completed"}),
        ("eee", {}),
    ]
    for identity, columns in rows:
        make_entry(project, identity, **columns)
    make_entry(Project.objects.create(slug="x", name="X"), "fff", priority=1)


@pytest.mark.usefixtures("entries")
def test_s4_42_entries_are_listed_by_priority_and_those_without_come_last(api: Api) -> None:
    assert listed(api) == ["ccc", "ddd", "bbb", "aaa", "eee"]


@pytest.mark.usefixtures("entries")
def test_entries_are_filtered_by_status_and_category(api: Api) -> None:
    assert listed(api, status="completed") == ["ddd"]
    assert listed(api, category="todo", status="active") == ["ccc"]
    for name in ("status", "category", "state"):
        answer = api.get("entries", **{name: "frozen"})
        assert (answer.status_code, name in answer.json()) == (400, True)


@pytest.mark.usefixtures("entries")
def test_pages_hold_every_entry_once(api: Api) -> None:
    seen, cursor = [], ""
    while cursor is not None:
        answer = api.get("entries", limit="2", cursor=cursor).json()
        seen += [item["id"][:3] for item in answer["items"]]
        cursor = answer["next"]
    assert seen == ["ccc", "ddd", "bbb", "aaa", "eee"]


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize("cursor", ["nothing", "f" * 32, "\x00"], ids=repr)
def test_a_cursor_that_was_not_given_out_is_refused(api: Api, cursor: str) -> None:
    assert api.get("entries", cursor=cursor).status_code == 400
