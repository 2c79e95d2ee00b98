"""`failsoft check` against a server: what it sends is judged, and each failure is named."""

import json
from collections.abc import Sequence

import pytest
from pytest_django.live_server_helper import LiveServer

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.settings.get_started import steps_of
from diagnostics.store.models import Event
from diagnostics.store.partitions import ensure_partitions
from diagnostics.store.run_models import AgentRun
from failsoft.command import main

pytestmark = pytest.mark.django_db(transaction=True)
BOTH = (Scope.INGEST, Scope.READ)


@pytest.fixture
def project(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in ("FAILSOFT_URL", "FAILSOFT_KEY", "FAILSOFT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    ensure_partitions()
    return Project.objects.create(slug="p", name="P")


def key_of(project: Project, scopes: Sequence[Scope] = BOTH) -> str:
    return issue_key(project, "check", list(scopes)).text


def test_a_run_arrives_and_is_judged(
    project: Project, live_server: LiveServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--url", f"{live_server.url}/", "--key", key_of(project)]) == 0
    run = AgentRun.objects.get(project=project)
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        f"{live_server.url}: arrived, judged as recovered at attempt 2",
        f"{live_server.url}/runs/{run.correlation_id}/",
    ]
    events = Event.objects.filter(project=project).order_by("attempt")
    assert [(event.kind, event.parse_error_type) for event in events] == [
        ("parse_invalid", "not_json"),
        ("succeeded", None),
    ]
    assert {(event.node, event.model, event.environment) for event in events} == {
        ("failsoft_check", "check", "check")
    }
    # It is no answer of an agent.
    assert [step.is_done for step in steps_of(project.pk)] == [True, True, True, False]


def test_json_is_one_document(
    project: Project,
    live_server: LiveServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FAILSOFT_URL", live_server.url)
    monkeypatch.setenv("FAILSOFT_KEY", key_of(project))
    assert main(["check", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["code"], told["outcome"]) == (True, "arrived", "recovered")
    assert told["url"] == live_server.url


@pytest.mark.parametrize(
    ("scopes", "code", "sentence"),
    [
        ((Scope.READ,), "no_scope", "the key may not send: it lacks the scope ingest"),
        ((Scope.INGEST,), "no_scope", "arrived, but the key may not read: it lacks the scope read"),
    ],
)
def test_a_missing_scope_is_named(
    scopes: Sequence[Scope],
    code: str,
    sentence: str,
    project: Project,
    live_server: LiveServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["check", "--json", "--url", live_server.url, "--key", key_of(project, scopes)]
    assert main(asked) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["code"], told["message"]) == (False, code, sentence)


def test_a_refused_key_is_named(
    project: Project, live_server: LiveServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--url", live_server.url, "--key", "fs_wrong"]) == 1
    assert "the key is refused" in capsys.readouterr().err


def test_no_server_is_told_from_a_wrong_address(
    project: Project, live_server: LiveServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--url", "http://127.0.0.1:9", "--key", "k"]) == 1
    assert "no server answers: " in capsys.readouterr().err
    assert main(["check", "--url", f"{live_server.url}/elsewhere", "--key", key_of(project)]) == 1
    assert "something else answers there" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["", "127.0.0.1:8000", "ftp://example.org"])
def test_no_address_ends_with_2(
    url: str, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--url", url]) == 2
    assert "address" in capsys.readouterr().err
