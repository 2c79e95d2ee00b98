"""Where a call was served, and with which credential: told, counted by version, no series."""

from typing import Any

import pytest

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import ApiKey, Project
from diagnostics.accounts.projects import issue_key
from diagnostics.console.api import list_series
from diagnostics.ingest.api.events import post_items
from diagnostics.ingest.event_shapes import describe_event
from diagnostics.ingest.otlp.protobuf import read_spans
from diagnostics.ingest.receiving import receive_spans
from diagnostics.purge import purge_correlation
from diagnostics.selection.selection import read_selection
from diagnostics.store.aggregation import fold
from diagnostics.store.models import Event, Series, Version
from tests.diagnostics.builders import make_event, succeeded, wire_event
from tests.diagnostics.otlp_bodies import span, traces
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db
Told = list[tuple[str | None, str | None]]


@pytest.fixture
def key() -> ApiKey:
    shift_clock()
    project = Project.objects.create(slug="p1", name="P1")
    return issue_key(project, "k", [Scope.INGEST]).row


def told(key: ApiKey) -> Told:
    rows = Event.objects.filter(project_id=key.project_id).order_by("region", "credential")
    return list(rows.values_list("region", "credential"))


def post(key: ApiKey, *items: dict[str, Any]) -> None:
    at = clock.now().isoformat()
    post_items(key.project_id, [{**item, "occurred_at": at} for item in items], b"", 1.0)


def test_two_regions_are_one_series_and_two_versions(key: ApiKey) -> None:
    post(
        key,
        succeeded(region="eu-west-1", credential="team-a"),
        wire_event(region="eu-west-1", credential="team-a"),
        succeeded(region="us-east-1"),
        succeeded(),
    )
    fold()
    assert Series.objects.filter(project_id=key.project_id).count() == 1
    versions = Version.objects.filter(project_id=key.project_id).values_list("region", "credential")
    assert set(versions) == {("eu-west-1", "team-a"), ("us-east-1", None), (None, None)}

    def calls(**asked: str) -> int:
        items, _ = list_series(key.project_id, read_selection(asked), clock.now())
        return sum(item["runs"] for item in items)

    assert (calls(), calls(region="us-east-1"), calls(region="-")) == (3, 1, 1)
    assert (calls(credential="team-a"), calls(q="region:eu")) == (1, 1)


def test_an_event_shows_both(key: ApiKey) -> None:
    post(key, succeeded(region="eu-west-1", credential="team-a"))
    shown = describe_event(Event.objects.get(project_id=key.project_id), None)
    assert (shown["region"], shown["credential"]) == ("eu-west-1", "team-a")


def test_what_was_purged_is_taken_out_of_its_version(key: ApiKey) -> None:
    post(key, wire_event(region="eu-west-1", correlation_id="gone"), succeeded(region="eu-west-1"))
    purge_correlation(key.project_id, "gone")
    ((item,), _) = list_series(key.project_id, read_selection({"region": "eu-west-1"}), clock.now())
    assert (item["runs"], item["retry_tokens"]) == (1, 0)


@pytest.mark.parametrize(
    "credential",
    [
        "6ce6b8781ed835ede8f18481a11485cc",
        "KEDabAUCTOhQbbtU6DNgGliQrGE6Qya4jJaeYroyrs8",
        "team-a 91huSS6AZPsK20FKcpXz",
    ],
)
def test_a_credential_itself_is_masked(key: ApiKey, credential: str) -> None:
    post(key, succeeded(credential=credential))
    ((_, stored),) = told(key)
    assert stored is not None
    assert stored.endswith("]")
    assert credential[-12:] not in stored


@pytest.mark.parametrize(
    "name", ["team-a", "azure-prod-2026-eu-west-1", "OPENAI_API_KEY", "billing key 2", "Schlüssel"]
)
def test_the_name_of_a_credential_stays(key: ApiKey, name: str) -> None:
    post(key, succeeded(credential=name))
    assert told(key) == [(None, name)]


def test_events_from_before_these_fields_keep_their_hash() -> None:
    fields = list(make_event().model_dump())
    assert fields[-2:] == ["region", "credential"]


@pytest.mark.parametrize(
    ("attributes", "resource", "expected"),
    [
        ({}, {"cloud.region": "eu-west-1"}, ("eu-west-1", None)),
        ({"aws.region": "us-east-1"}, {"cloud.region": "eu-west-1"}, ("us-east-1", None)),
        ({"gcp.location": "europe-west4"}, {}, ("europe-west4", None)),
        (
            {"failsoft.region": "north", "failsoft.credential": "team-a"},
            {"cloud.region": "eu-west-1"},
            ("north", "team-a"),
        ),
        ({}, {"failsoft.credential": "team-b"}, (None, "team-b")),
    ],
)
def test_spans_tell_both(
    key: ApiKey,
    attributes: dict[str, Any],
    resource: dict[str, Any],
    expected: tuple[str | None, str | None],
) -> None:
    call = span(
        attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **attributes}
    )
    receive_spans(key.project_id, read_spans(traces(call, resource=resource).SerializeToString()))
    assert told(key) == [expected]
