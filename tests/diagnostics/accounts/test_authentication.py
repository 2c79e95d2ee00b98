"""A key opens one project, for what it was made for, until it ends (S1 to S4)."""

from datetime import datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from diagnostics import clock
from diagnostics.accounts import authentication
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import find_key
from diagnostics.accounts.models import ApiKey, Project
from diagnostics.accounts.projects import ensure_default_project, issue_key, revoke_key
from diagnostics.ingest.recording import record
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db
URL = "/api/v1/events"


def ask(key: str | None, method: str = "get", url: str = URL) -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    client = Client(headers=headers)
    if method == "get":
        return client.get(url).status_code
    return client.post(url, b"[]", content_type="application/json").status_code


@pytest.mark.parametrize("scope", Scope)
def test_a_key_reads_what_it_may_do_and_never_its_secret(project: Project, scope: Scope) -> None:
    ends = clock.now() + timedelta(days=3)
    issued = issue_key(project, "agents", [scope], ends)
    client = Client(headers={"Authorization": f"Bearer {issued.text}"})
    answer = client.get("/api/v1/key")
    assert answer.status_code == 200
    key = answer.json()
    assert (key["id"], key["name"], key["project"]) == (issued.row.key_id, "agents", project.slug)
    assert key["scopes"] == [scope]
    assert datetime.fromisoformat(key["expires_at"]) == ends
    assert {*key} == {"id", "name", "project", "scopes", "created_at", "expires_at", "last_used_at"}
    assert issued.text.rsplit("_", 1)[1] not in answer.text
    assert client.options("/api/v1/key").status_code == 200
    assert client.post("/api/v1/key").status_code == 405
    assert Client().get("/api/v1/key").status_code == 401


@pytest.mark.parametrize(
    ("scope", "reads", "posts"),
    [(Scope.READ, 200, 403), (Scope.INGEST, 403, 200), (Scope.ADMIN, 200, 200)],
)
def test_a_key_may_do_what_its_scope_says(
    project: Project, scope: Scope, reads: int, posts: int
) -> None:
    key = issue_key(project, "k", [scope]).text
    assert (ask(key), ask(key, "post")) == (reads, posts)


def test_whoever_has_no_right_key_gets_one_and_the_same_401(project: Project) -> None:
    right = issue_key(project, "k", [Scope.READ]).text
    wrong_secret = right[:-1] + ("a" if right[-1] != "a" else "b")
    unknown_id = "fs_" + "0" * 12 + right[15:]
    answers = [
        Client().get(URL, headers={"Authorization": text})
        for text in (
            f"Bearer {wrong_secret}",
            f"Bearer {unknown_id}",
            f"Basic {right}",
            right,
            "Bearer",
            "Bearer fs_",
            "Bearer \u00e9",
        )
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert answers[0]["WWW-Authenticate"] == "Bearer"
    assert Client().get(URL).status_code == 401


def test_a_key_in_the_address_is_not_read(project: Project) -> None:
    key = issue_key(project, "k", [Scope.READ]).text
    assert ask(None, url=f"{URL}?key={key}&access_token={key}") == 401


def test_a_revoked_and_an_expired_key_are_refused_at_once(project: Project) -> None:
    issued = issue_key(project, "k", [Scope.READ])
    assert ask(issued.text) == 200
    assert revoke_key(issued.row, "a test")
    assert not revoke_key(issued.row, "a test")
    assert ask(issued.text) == 401
    ended = clock.now() - timedelta(seconds=1)
    assert ask(issue_key(project, "k", [Scope.READ], ended).text) == 401
    later = clock.now() + timedelta(minutes=1)
    assert ask(issue_key(project, "k", [Scope.READ], later).text) == 200


def test_a_key_sees_its_own_project_only(project: Project) -> None:
    other = Project.objects.create(slug="o", name="O")
    record(other.pk, [make_event()])
    key = issue_key(project, "k", [Scope.READ]).text
    answer = Client().get(URL, headers={"Authorization": f"Bearer {key}"})
    assert answer.json()["items"] == []


def test_a_header_that_nobody_decoded_is_accepted(project: Project) -> None:
    key = issue_key(project, "k", [Scope.READ]).text
    assert Client().get(URL, headers={"Authorization": f"Bearer%20{key}"}).status_code == 200


def test_the_last_use_is_written_once_a_minute(project: Project) -> None:
    issued = issue_key(project, "k", [Scope.READ])
    header = f"Bearer {issued.text}"
    find_key(header)
    first = ApiKey.objects.get().last_used_at
    find_key(header)
    assert ApiKey.objects.get().last_used_at == first
    old = clock.now() - timedelta(minutes=2)
    ApiKey.objects.update(last_used_at=old)
    authentication.forget_all()
    find_key(header)
    used = ApiKey.objects.get().last_used_at
    assert used is not None
    assert used > old


def test_only_the_hash_of_a_key_is_kept(project: Project) -> None:
    issued = issue_key(project, "k", [Scope.READ])
    secret = issued.text.split("_", 2)[2]
    row = ApiKey.objects.values().get()
    assert secret not in str(row)
    assert len(bytes(row["secret_hash"])) == 32


def test_create_key_prints_a_key_that_works(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("create_key", project="p", name="cli", scopes=["read"])
    assert ask(capsys.readouterr().out.strip()) == 200


def test_create_key_names_the_projects_there_are(project: Project) -> None:
    with pytest.raises(CommandError, match="known: p"):
        call_command("create_key", project="nope", name="cli", scopes=["read"])


def test_the_default_project_is_made_once() -> None:
    assert ensure_default_project() == ensure_default_project()
