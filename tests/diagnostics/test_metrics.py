"""/metrics tells Prometheus what the database says."""

from collections.abc import Mapping

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from diagnostics import metrics
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.store.models import Heartbeat
from diagnostics.store.outbox import enqueue
from tests.console import post_events
from tests.diagnostics.builders import AT, degraded, succeeded, wire_event

pytestmark = pytest.mark.django_db
LABELS = {
    *("provider", "model", "kind", "part", "outcome", "reason", "type", "direction"),
    *("le", "table", "state", "severity", "acknowledged", "what", "counted", "bound"),
}
Samples = Mapping[tuple[str, str, str], float]


def scrape(client: Client | None = None) -> Samples:
    answer = (client or Client()).get("/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    samples = [sample for family in families for sample in family.samples]
    assert all(set(s.labels) <= LABELS for s in samples)
    return {
        (s.name, s.labels.get("provider", ""), s.labels.get("model", "")): s.value
        for s in samples
        if not set(s.labels) - {"provider", "model"}
    }


def test_s0_53_two_invalid_answers_count_two(project: Project) -> None:
    post_events(project, wire_event(attempt=1), wire_event(attempt=2), degraded())
    name = "pdca_next_step_parse_invalid_total"
    assert scrape()[name, "fake", "fake-1"] == 2


def test_s0_54_a_degradation_counts_one(project: Project) -> None:
    post_events(project, wire_event(attempt=1), wire_event(attempt=2), degraded())
    name = "pdca_next_step_degraded_total"
    assert scrape()[name, "fake", "fake-1"] == 1


def test_s0_54_only_parse_failures_of_the_next_step_count(project: Project) -> None:
    post_events(
        project,
        degraded(reason="provider_failed"),
        degraded(name="graph.plan.degraded", reason="plan_parse_failed"),
        wire_event(name="graph.plan.parse_invalid"),
    )
    samples = scrape()
    assert samples["pdca_next_step_degraded_total", "fake", "fake-1"] == 0
    assert samples["pdca_next_step_parse_invalid_total", "fake", "fake-1"] == 0


def test_s0_55_provider_and_model_are_the_only_labels_and_bounded(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MAX_SERIES", 3)
    post_events(project, wire_event(provider=None, model=None))
    post_events(project, *[wire_event(model="busy") for _ in range(3)])
    post_events(project, *[wire_event(model=f"m{number}") for number in range(9)])
    name = "pdca_next_step_parse_invalid_total"
    counted = {key[1:]: n for key, n in scrape().items() if key[0] == name}
    assert len(counted) == 4
    assert counted["fake", "busy"] == 3
    assert sum(counted.values()) == 13
    assert counted["other", "other"] >= 7


def test_an_unnamed_provider_is_called_unknown(project: Project) -> None:
    post_events(project, wire_event(provider=None, model=None))
    name = "pdca_next_step_parse_invalid_total"
    assert scrape()[name, "unknown", "unknown"] == 1


def test_s1_17_attempts_and_retries_are_counted(project: Project) -> None:
    post_events(
        project,
        wire_event(attempt=1),
        succeeded(attempt=2),
        wire_event(attempt=1),
        wire_event(attempt=2),
        degraded(attempts=2),
        degraded(attempts=1),
        succeeded(attempt=1),
    )
    samples = scrape()
    assert samples["failsoft_plan_attempts_total", "fake", "fake-1"] == 5
    assert samples["failsoft_plan_retries_recovered_total", "fake", "fake-1"] == 1
    assert samples["failsoft_plan_retries_failed_total", "fake", "fake-1"] == 1


def test_s1_18_the_text_parses_and_tells_of_the_installation(project: Project) -> None:
    Heartbeat.objects.create(name="worker", at=AT)
    enqueue("some.task", {}, "fold", None)
    answer = Client().get("/metrics")
    families = {f.name: f for f in text_string_to_metric_families(answer.text)}
    assert families["failsoft_outbox_waiting"].samples[0].value == 1
    assert "failsoft_heartbeat_age_seconds" in families
    assert families["failsoft_events"].type == "counter"


def test_m_5_counters_equal_the_rows_whoever_is_asked(project: Project) -> None:
    post_events(project, *[wire_event() for _ in range(7)])
    name = "pdca_next_step_parse_invalid_total"
    assert scrape()[name, "fake", "fake-1"] == 7
    assert scrape(Client())[name, "fake", "fake-1"] == 7


def test_from_elsewhere_a_key_is_needed_and_shows_its_project(project: Project) -> None:
    other = Project.objects.create(slug="o", name="O")
    post_events(other, wire_event(model="theirs"))
    post_events(project, wire_event(model="ours"))
    far = "192.0.2.7"
    assert Client(REMOTE_ADDR=far).get("/metrics").status_code == 401
    proxied = Client(headers={"X-Forwarded-For": "192.0.2.7"})
    assert proxied.get("/metrics").status_code == 401
    ingest = issue_key(project, "k", [Scope.INGEST]).text
    refused = Client(headers={"Authorization": f"Bearer {ingest}"}, REMOTE_ADDR=far)
    assert refused.get("/metrics").status_code == 403
    read = issue_key(project, "k", [Scope.READ]).text
    for address in (far, "127.0.0.1"):
        client = Client(headers={"Authorization": f"Bearer {read}"}, REMOTE_ADDR=address)
        models = {model for _, _, model in scrape(client)}
        assert "ours" in models
        assert "theirs" not in models


def test_a_key_that_is_not_known_is_refused_from_the_machine_itself_too() -> None:
    client = Client(headers={"Authorization": "Bearer fs_0123456789ab_unknown"})
    assert client.get("/metrics").status_code == 401
