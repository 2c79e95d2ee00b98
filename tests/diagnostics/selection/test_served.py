"""Who answered is a dimension to narrow by: events, failures and counts."""

from datetime import timedelta

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.recording import record
from diagnostics.queries.sums import Question, sum_rollups
from diagnostics.selection.selection import read_selection
from diagnostics.store.aggregation import fold
from diagnostics.store.windows import Grain, align_to
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db
BY_AZURE = "gpt-4o-mini at azure"


@pytest.fixture
def project() -> Project:
    project = Project.objects.create(slug="p", name="P")
    at = clock.now() - timedelta(minutes=5)
    told = {"occurred_at": at.isoformat(), "model": "gpt-4o"}
    mini = {"served_model": "gpt-4o-mini", "upstream": "azure", "parse_error_type": "truncated"}
    record(project.pk, [make_event(**told, **mini) for _ in range(2)])
    record(project.pk, [make_event(**told) for _ in range(3)])
    fold()
    return project


@pytest.fixture
def client(project: Project) -> Client:
    key = issue_key(project, "k", [Scope.READ]).text
    return Client(headers={"Authorization": f"Bearer {key}"})


ASKED = [
    ({"served": BY_AZURE}, 2, ["truncated"]),
    ({"served": "-"}, 3, ["not_json"]),
    ({"served": "azure"}, 0, []),
    ({"q": f'served:"{BY_AZURE}"'}, 2, ["truncated"]),
    ({"q": "served:azure"}, 2, ["truncated"]),
    ({"q": "-served:azure"}, 3, ["not_json"]),
    ({"q": "served:-"}, 3, ["not_json"]),
]


@pytest.mark.parametrize(("asked", "events", "kinds"), ASKED)
def test_events_and_failures_are_narrowed_by_who_answered(
    client: Client, asked: dict[str, str], events: int, kinds: list[str]
) -> None:
    assert len(client.get("/api/v1/events", asked).json()["items"]) == events
    failures = client.get("/api/v1/failures", asked).json()["items"]
    assert [(item["error_type"], item["seen"]) for item in failures] == [
        (kind, events) for kind in kinds
    ]


@pytest.mark.parametrize(("asked", "events", "kinds"), ASKED)
def test_counts_are_narrowed_by_who_answered(
    project: Project, asked: dict[str, str], events: int, kinds: list[str]
) -> None:
    now = clock.now()
    window = align_to(Grain.HOUR, now - timedelta(hours=1), now)
    terms = read_selection(asked).rollup_terms
    rows = sum_rollups(project.pk, Question(window, ("model",), ("invalid",), terms))
    assert sum(row[1] for row in rows) == events
