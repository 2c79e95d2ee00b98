"""GET /api/v1/series answers how every model stands."""

from datetime import timedelta

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from tests.console import post_events
from tests.diagnostics.builders import degraded, succeeded

pytestmark = pytest.mark.django_db


def test_s0_57_degradation_is_counted_per_provider_model_and_window() -> None:
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", [Scope.READ]).text
    now = clock.now()
    last_hour = (now - timedelta(minutes=30)).isoformat()
    yesterday = (now - timedelta(hours=20)).isoformat()
    events = [
        *[succeeded(occurred_at=yesterday, model="a") for _ in range(30)],
        *[degraded(occurred_at=last_hour, model="a") for _ in range(20)],
        *[succeeded(occurred_at=last_hour, model="b") for _ in range(10)],
    ]
    post_events(project, *events)

    def ask(**asked: str) -> list[dict[str, object]]:
        answer = Client().get("/api/v1/series", asked, headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 200, answer.content
        items: list[dict[str, object]] = answer.json()["items"]
        return items

    bad, good = ask()
    assert (bad["model"], bad["runs"], bad["degraded"]) == ("a", 50, 20)
    assert (bad["state"], good["state"]) == ("degrading", "low_volume")
    assert bad["since"] is not None
    assert good["since"] is None
    assert len(ask(model="b")) == 1
    (hour, _) = ask(**{"from": (now - timedelta(hours=1)).isoformat()})
    assert (hour["runs"], hour["degraded_rate"]) == (20, 1.0)


def test_series_and_verdict_take_in_q_what_they_take_as_parameters() -> None:
    project = Project.objects.create(slug="p", name="P")
    headers = {"Authorization": f"Bearer {issue_key(project, 'k', [Scope.READ]).text}"}
    at = (clock.now() - timedelta(hours=2)).isoformat()
    for model, version in (("a", "v1"), ("b", "v2")):
        post_events(project, succeeded(occurred_at=at, model=model, prompt_version=version))
    listed = [
        Client().get("/api/v1/series", asked, headers=headers).json()["items"]
        for asked in ({"prompt_version": "v1"}, {"q": "prompt:=v1"})
    ]
    assert [[item["model"] for item in items] for items in listed] == [["a"], ["a"]]
    ask_verdict = Client().get("/api/v1/verdict", {"q": "release:=r-1"}, headers=headers)
    assert ask_verdict.status_code == 200
    words = Client().get("/api/v1/series", {"q": "corr:run-1"}, headers=headers)
    assert words.status_code == 400
    assert "prompt_version" in words.json()["q"]
