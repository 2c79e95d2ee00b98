"""A known incident is loaded; a program asks what happened, and gets the truth.

`bench.verdict` asks about 120 of them; here is one of each kind.
"""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from tests.incidents.drawn_runs import make_incident
from tests.incidents.scenarios import KINDS
from tests.incidents.writing import load_incident
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db

RUNS_PER_HOUR, WEAKEST = 26.0, 0.25
SEEDS = {**dict.fromkeys(KINDS, 1), "provider_outage": 2, "schema": 2, "model": 5}
"""Of a few thousand runs each; weak ones are left to the benchmark."""
MARGIN = timedelta(minutes=25)
"""One interval in twenty does not hold the onset; it is near it, then."""
DAILY = {"provider_outage", "model", "prompt", "two_causes", "healthy"}


@pytest.fixture
def project() -> Project:
    return Project.objects.get_or_create(slug="default", defaults={"name": "Default"})[0]


@pytest.fixture
def afternoon(db: None) -> None:
    """Shift the clock: the same runs whenever the suite runs."""
    shift_clock()


def ask(project: Project) -> dict[str, Any]:
    key = issue_key(project, "story", [Scope.READ]).text
    answer = Client().get("/api/v1/verdict", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(one, marks=[] if one in DAILY else pytest.mark.nightly) for one in KINDS]
)
def test_the_verdict_tells_the_truth(kind: str, project: Project, afternoon: None) -> None:
    incident = make_incident(kind, SEEDS[kind], clock.now(), RUNS_PER_HOUR, weakest=WEAKEST)
    load_incident(project, incident)
    truth, said = incident.truth, ask(project)
    several = len(said["incidents"]) > 1
    assert ("mixed" if several else said["cause"]) == truth["cause"], said["sentence"]
    if truth["since"] is None:
        assert (said["state"], said["since"]) == ("ok", None)
        return
    assert said["state"] == "degrading"
    low, high = (datetime.fromisoformat(said[name]) for name in ("since_low", "since_high"))
    assert low - MARGIN <= truth["since"] <= high + MARGIN
    assert several or said["cause_value"] == truth["cause_value"]
    assert truth["model"] in {None, said["model"]}
    assert truth["provider"] in {None, said["provider"]}
    assert truth["top_kind"] in {None, said["top_kind"]}
    assert all(one["text"] and one["evidence"] for one in said["advice"])
    assert said["advice"]
    assert said["sentence"].startswith("Degrading since ")
