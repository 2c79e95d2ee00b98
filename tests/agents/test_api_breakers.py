"""Breakers moved over REST: named, reasoned, scoped."""

import pytest

from agents.breakers.models import Breaker
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import AuditEntry, Project
from diagnostics.accounts.projects import issue_key
from tests.agents.conftest import Api
from tests.agents.console.test_breakers import make_breaker


def test_a_breaker_is_isolated_and_closed_and_the_history_says_by_whom(
    api: Api, project: Project
) -> None:
    row = make_breaker(project)

    isolated = api.post(f"breakers/{row.pk}/isolate", {"reason": "too dear"}).json()
    closed = api.post(f"breakers/{row.pk}/close", {"reason": "cheaper now"}).json()

    assert (isolated["state"], closed["state"]) == ("isolated", "closed")
    history = closed["transitions"]
    assert [item["reason"] for item in history] == ["cheaper now", "too dear"]
    assert history[0]["actor"].startswith("key tests (")


def test_a_move_is_an_entry_of_the_audit_log_that_names_the_key(api: Api, project: Project) -> None:
    row = make_breaker(project)

    for verb in ("isolate", "isolate", "close"):
        api.post(f"breakers/{row.pk}/{verb}", {"reason": "too dear"})

    entries = list(AuditEntry.objects.order_by("number"))
    assert [entry.action for entry in entries] == ["breaker.isolated", "breaker.closed"]
    assert all(entry.actor.startswith("key tests (") for entry in entries)
    assert entries[0].details == '{"why":"too dear"}'


@pytest.mark.parametrize("body", [{}, {"reason": " "}, {"reason": "x", "y": 1}, []])
def test_without_a_reason_nothing_moves(api: Api, project: Project, body: object) -> None:
    row = make_breaker(project)

    assert api.post(f"breakers/{row.pk}/isolate", body).status_code == 422
    assert Breaker.objects.get(pk=row.pk).state == "closed"


def test_only_an_administrators_key_of_the_project_moves_it(api: Api, project: Project) -> None:
    row = make_breaker(project)
    other = make_breaker(Project.objects.create(slug="other", name="Other"))
    reader = Api(issue_key(project, "reader", [Scope.READ]).text)

    assert reader.post(f"breakers/{row.pk}/isolate", {"reason": "x"}).status_code == 403
    assert api.post(f"breakers/{other.pk}/isolate", {"reason": "x"}).status_code == 404
    assert api.post(f"breakers/{row.pk}/burn", {"reason": "x"}).status_code == 404
