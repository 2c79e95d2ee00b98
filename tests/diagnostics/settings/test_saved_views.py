"""Saved views: whose they are, who may open them, and what they keep."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from diagnostics.accounts.models import AuditEntry, Project, SavedView
from diagnostics.settings.saved_views import LONGEST_NAME, MOST_VIEWS
from tests.console import Role, make_member

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(project: Project) -> User:
    return make_member(project, role=Role.VIEWER)


@pytest.fixture
def client(client: Client, user: User) -> Client:
    client.force_login(user)
    return client


def save(client: Client, name: str = "Haiku", **fields: Any) -> Any:
    sent = {"name": name, "page": "runs", "query": "model=haiku&range=7d", **fields}
    return client.post("/views/save/", sent)


def change(client: Client, view: SavedView, verb: str, **fields: Any) -> Any:
    return client.post(f"/views/{view.pk}/change/", {"verb": verb, **fields})


def test_a_saved_view_opens_its_page_under_its_filters(client: Client, user: User) -> None:
    answer = save(client)
    assert answer["Location"] == "/runs/?model=haiku&range=7d"
    view = SavedView.objects.get()
    assert (view.owner, view.name, view.is_shared) == (user, "Haiku", False)
    html = client.get("/views/").content.decode()
    assert 'href="/runs/?model=haiku&amp;range=7d"' in html


def test_a_place_in_a_list_and_a_secret_are_not_kept(client: Client) -> None:
    token = "ghp_" + "a1B2" * 9
    save(client, query=f"q={token}&before=123&model=haiku")
    query = SavedView.objects.get().query
    assert token not in query
    assert "before" not in query
    assert "model=haiku" in query


@pytest.mark.parametrize(
    ("name", "page"),
    [("", "runs"), (" \t ", "runs"), ("x", "account_logout"), ("x", "")],
    ids=["empty", "blank", "no page of ours", "no page"],
)
def test_what_cannot_be_saved_says_why(client: Client, name: str, page: str) -> None:
    save(client, name, page=page)
    assert not SavedView.objects.exists()
    assert "Not saved" in client.get("/").content.decode()


def test_a_name_is_taken_once_an_owner(client: Client, project: Project) -> None:
    save(client)
    save(client)
    assert SavedView.objects.count() == 1
    assert "already" in client.get("/").content.decode()
    other = make_member(project, "ben")
    client.force_login(other)
    save(client)
    assert SavedView.objects.count() == 2


def test_a_long_name_is_cut_and_a_hundred_are_enough(
    client: Client, user: User, project: Project
) -> None:
    save(client, "x" * 300)
    assert len(SavedView.objects.get().name) == LONGEST_NAME
    SavedView.objects.bulk_create(
        SavedView(project=project, owner=user, name=f"v{number}", page="now")
        for number in range(MOST_VIEWS)
    )
    save(client, "one more")
    assert not SavedView.objects.filter(name="one more").exists()


def test_a_shared_view_is_opened_by_all_and_changed_by_its_owner(
    client: Client, project: Project
) -> None:
    save(client, is_shared="on")
    view = SavedView.objects.get()
    client.force_login(make_member(project, "ben", Role.ADMIN))
    assert "Haiku" in client.get("/views/").content.decode()
    for verb in ("rename", "share", "unshare", "delete"):
        assert change(client, view, verb, name="Mine").status_code == 404
    view.refresh_from_db()
    assert (view.name, view.is_shared) == ("Haiku", True)


def test_a_view_that_is_not_shared_is_its_owners(client: Client, project: Project) -> None:
    save(client)
    assert "Saved as" in client.get("/").content.decode()
    client.force_login(make_member(project, "ben", Role.ADMIN))
    assert "Haiku" not in client.get("/views/").content.decode()


def test_views_of_another_project_are_not_there(
    client: Client, user: User, project: Project
) -> None:
    other = Project.objects.create(slug="o", name="Other")
    view = SavedView.objects.create(
        project=other, owner=user, name="theirs", page="now", is_shared=True
    )
    assert "theirs" not in client.get("/views/").content.decode()
    assert change(client, view, "delete").status_code == 404


def test_the_owner_renames_shares_and_deletes_and_all_is_noted(client: Client, user: User) -> None:
    save(client)
    view = SavedView.objects.get()
    change(client, view, "rename", name="Haiku in production")
    change(client, view, "share")
    change(client, view, "unshare")
    change(client, view, "nonsense")
    change(client, SavedView.objects.get(name="Haiku in production"), "delete")
    assert not SavedView.objects.exists()
    actions = list(AuditEntry.objects.order_by("number").values_list("action", flat=True))
    assert actions == ["view.saved", "view.renamed", "view.shared", "view.unshared", "view.deleted"]


def test_a_name_of_another_view_cannot_be_taken(client: Client) -> None:
    save(client, "one")
    save(client, "two")
    change(client, SavedView.objects.get(name="one"), "rename", name="two")
    assert set(SavedView.objects.values_list("name", flat=True)) == {"one", "two"}


def test_a_query_of_too_many_fields_is_refused_with_a_reason(client: Client) -> None:
    answer = save(client, query="&".join(f"a{number}=1" for number in range(101)))
    assert answer.status_code == 302
    assert not SavedView.objects.exists()


def test_a_view_is_renamed_however_many_there_are(
    client: Client, user: User, project: Project
) -> None:
    SavedView.objects.bulk_create(
        SavedView(project=project, owner=user, name=f"v{number}", page="now")
        for number in range(MOST_VIEWS)
    )
    change(client, SavedView.objects.get(name="v7"), "rename", name="Haiku")
    assert SavedView.objects.filter(name="Haiku").exists()


def test_an_empty_list_says_how_to_fill_it(client: Client) -> None:
    html = client.get("/views/").content.decode()
    assert "No saved views." in html


def test_visitors_sign_in_first(client: Client) -> None:
    client.logout()
    assert "/accounts/login/" in client.get("/views/")["Location"]
    assert "/accounts/login/" in save(client)["Location"]
