"""/api/v1/incidents, alert-rules and silences."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.alerting.evaluator import evaluate_project
from diagnostics.alerting.incident_api import WholeIncidentResource, describe_whole_incident
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.rule_models import AlertRule, Evaluation, RuleDay
from diagnostics.alerting.rule_rows import purge_evaluations
from diagnostics.alerting.saved_states import ensure_standard_rules
from diagnostics.purge import purge_project
from diagnostics.store.windows import floor
from tests.diagnostics.alert_calls import MINUTE, count_calls, count_degraded, degrade
from tests.diagnostics.alerting.notifications.building import make_channel
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db
Ask = Callable[..., Any]


@pytest.fixture
def now() -> datetime:
    return floor(clock.now(), MINUTE)


@pytest.fixture
def ask(client: Client, project: Project) -> Ask:
    """Ask with a key of scope admin."""
    key = issue_key(project, "k", [Scope.ADMIN]).text

    def send(method: str, path: str, body: object = None) -> Any:
        told: dict[str, Any] = {"headers": {"Authorization": f"Bearer {key}"}}
        if body is not None:
            told |= {"data": body, "content_type": "application/json"}
        return getattr(client, method)(f"/api/v1/{path}", **told)

    return send


@pytest.fixture
def incident(project: Project, now: datetime) -> Incident:
    count_degraded(project.pk)
    degrade(project, now, 3)
    evaluate_project(project.pk, now)
    return Incident.objects.get()


def test_incidents_are_listed_filtered_and_exported(ask: Ask, incident: Incident) -> None:
    (item,) = ask("get", "incidents").json()["items"]
    assert item["id"] == incident.pk
    assert item["title"] == "fake/fake-1"
    for query, found in (
        ("model=fake-1&state=open", 1),
        ("model=other", 0),
        ("q=model:fake", 1),
        ("q=-model:fake", 0),
        ("severity=critical", 0),
    ):
        assert len(ask("get", f"incidents?{query}").json()["items"]) == found, query
    assert ask("get", "incidents?format=csv").getvalue().count(b"\n") == 2
    assert ask("get", "incidents?kind=truncated").status_code == 400


@pytest.mark.parametrize("name", ["state", "severity", "cause"])
def test_an_unknown_value_of_a_filter_of_incidents_is_refused(ask: Ask, name: str) -> None:
    answer = ask("get", f"incidents?{name}=weather")
    assert answer.status_code == 400
    assert answer.json()[name].startswith("one of ")


def test_pages_of_incidents_follow_each_other(ask: Ask, project: Project, now: datetime) -> None:
    for hour in range(5):
        at = now - timedelta(hours=hour)
        Incident.objects.create(project=project, title=f"i{hour}", onset=at, fired_at=at)
    seen, cursor = [], ""
    while cursor is not None:
        page = ask("get", f"incidents?limit=2&cursor={cursor}").json()
        seen += [item["title"] for item in page["items"]]
        cursor = page["next"]
    assert seen == ["i0", "i1", "i2", "i3", "i4"]


def test_an_incident_is_acknowledged_commented_and_resolved(ask: Ask, incident: Incident) -> None:
    path = f"incidents/{incident.pk}"
    assert ask("post", f"{path}/acknowledge").json()["state"] == "acknowledged"
    assert ask("post", f"{path}/comment", {"text": " "}).status_code == 422
    assert ask("post", f"{path}/comment", {"text": "Looking."}).status_code == 200
    assert ask("post", f"{path}/resolve", {"cause": "weather"}).status_code == 422
    told = ask("post", f"{path}/resolve", {"cause": "prompt", "text": "Undone."}).json()
    assert (told["state"], told["resolution_cause"]) == ("resolved", "prompt")
    kinds = [line["kind"] for line in told["timeline"]]
    assert kinds == ["fired", "acknowledged", "comment", "resolved", "comment"]
    assert ask("get", "incidents/0").status_code == 404


def test_no_key_of_an_incident_is_missing_or_unknown(ask: Ask, incident: Incident) -> None:
    ask("post", f"incidents/{incident.pk}/comment", {"text": "Looking."})
    whole = ask("get", f"incidents/{incident.pk}").json()
    assert set(describe_whole_incident(incident)) == set(whole)
    schema = WholeIncidentResource.model_json_schema(mode="serialization")
    parts = (
        schema,
        *(schema["$defs"][name] for name in ("IncidentSliceResource", "IncidentEntry")),
    )
    for part in parts:
        part["additionalProperties"] = False
    assert whole["slices"]
    assert len(whole["timeline"]) > 1
    Draft202012Validator(schema).validate(whole)


def test_a_built_in_rule_is_changed_and_deleted_for_good(ask: Ask, project: Project) -> None:
    ensure_standard_rules()
    path = f"alert-rules/{AlertRule.objects.get(standard='change').pk}"
    assert ask("patch", path, {"is_enabled": False}).json()["is_enabled"] is False
    assert ask("delete", path).status_code == 204
    ensure_standard_rules()
    assert ask("get", "alert-rules").json()["items"] == []


def test_a_rule_tells_its_evaluations_fires_and_false_fires_of_90_days(
    ask: Ask, project: Project, incident: Incident, now: datetime
) -> None:
    path = f"alert-rules/{AlertRule.objects.get().pk}"
    # Evaluated again, a minute counts once; nor do other projects.
    for minute in (0, 1, 1, 2, 3):
        evaluate_project(project.pk, now + minute * MINUTE)
    other = Project.objects.create(slug="other", name="Other")
    count_degraded(other.pk)
    degrade(other, now, 3)
    evaluate_project(other.pk, now)
    found = {"evaluations": 4, "fires": 1, "false_fires": 0}
    assert ask("get", path).json()["last_90_days"] == found
    ask("post", f"incidents/{incident.pk}/resolve", {"cause": "false_alarm"})
    (rule,) = ask("get", "alert-rules").json()["items"]
    assert rule["last_90_days"] == {**found, "false_fires": 1}


def test_90_days_of_a_rule_outlive_its_evaluations(
    ask: Ask, project: Project, incident: Incident, now: datetime
) -> None:
    path = f"alert-rules/{AlertRule.objects.get().pk}"
    for day, left in ((89, (1, 1)), (91, (0, 0))):
        shift_clock(now + timedelta(days=day))
        purge_evaluations()
        told = ask("get", path).json()["last_90_days"]
        assert (told["evaluations"], told["fires"]) == left, day
        assert not Evaluation.objects.exists()
    assert not RuleDay.objects.exists()


def test_purging_a_project_forgets_what_became_of_its_rules(
    ask: Ask, project: Project, incident: Incident
) -> None:
    path = f"alert-rules/{AlertRule.objects.get().pk}"
    purge_project(project)
    told = ask("get", path).json()["last_90_days"]
    assert told == {"evaluations": 0, "fires": 0, "false_fires": 0}


def test_a_rule_is_made_changed_and_deleted(ask: Ask) -> None:
    given = {
        "name": "Above a tenth",
        "signal": "degraded_ratio",
        "detector": "threshold",
        "parameters": {"limit": 0.1},
    }
    made = ask("post", "alert-rules", given)
    assert made.status_code == 201
    rule = made.json()
    assert rule["parameters"] == {"limit": 0.1}
    path = f"alert-rules/{rule['id']}"
    changed = ask("patch", path, {"detector": "change"}).json()
    assert (changed["version"], changed["parameters"]) == (2, {})
    assert ask("patch", path, {"severity": "critical"}).json()["version"] == 2
    assert ask("post", "alert-rules", given).status_code == 422
    assert ask("delete", path).status_code == 204
    assert ask("get", path).status_code == 404
    assert AlertRule.objects.filter(pk=rule["id"], archived_at__isnull=False).exists()


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"detector": "count"}, "/detector"),
        ({"signal": "weather"}, "/signal"),
        ({"parameters": {"limit": 1.5}}, "/parameters/limit"),
        ({"parameters": {"limit": True}}, "/parameters/limit"),
        ({"filter": "release=v5"}, "/filter"),
        ({"filter": "prompt_version=v5", "detector": "change", "parameters": {}}, "/filter"),
        ({"group_by": ["prompt_version"]}, "/group_by"),
        ({"for_seconds": -1}, "/for_seconds"),
        ({"routing": ["a"]}, "/routing"),
        ({"name": ""}, "/name"),
        ({"standard": "change"}, "/standard"),
        ({"project_id": 7}, "/project_id"),
    ],
    ids=str,
)
def test_a_wrong_rule_is_refused_by_field(ask: Ask, wrong: dict[str, object], path: str) -> None:
    given = {
        "name": "n",
        "signal": "degraded_ratio",
        "detector": "threshold",
        "parameters": {"limit": 0.1},
    }
    answer = ask("post", "alert-rules", {**given, **wrong})
    assert answer.status_code == 422
    assert path in [error["path"] for error in answer.json()["errors"]]


@pytest.mark.parametrize("field", ["routing", "escalation"])
def test_a_rule_names_channels_of_its_project_only(ask: Ask, project: Project, field: str) -> None:
    other = Project.objects.create(slug="other", name="Other")
    own, foreign = make_channel(project), make_channel(other)
    for unknown in (foreign.pk, 0, -1):
        answer = ask("post", "alert-rules", {"name": "n", field: [own.pk, unknown]})
        assert answer.status_code == 422, unknown
        assert [error["path"] for error in answer.json()["errors"]] == [f"/{field}"]
        assert str(unknown) in answer.json()["errors"][0]["message"]
    rule = ask("post", "alert-rules", {"name": "n", field: [own.pk]}).json()
    path = f"alert-rules/{rule['id']}"
    assert ask("patch", path, {field: [foreign.pk]}).status_code == 422
    # A rule goes on naming a channel that was deleted: nobody is notified there.
    own.delete()
    assert ask("patch", path, {"severity": "critical"}).status_code == 200


def test_a_rule_is_tried_on_the_past(ask: Ask, project: Project, now: datetime) -> None:
    begin = floor(now, timedelta(hours=1)) - timedelta(days=3)
    shares = [0.02] * 40 + [0.5] * 6 + [0.02] * 26
    count_calls(project, begin, shares, 60, "m-1", timedelta(hours=1))
    given = {"signal": "call_failure_ratio", "detector": "change", "days": 7}
    found = ask("post", "alert-rules/backtest", given).json()
    assert len(found["fires"]) == 1
    assert found["fires"][0]["slice"] == {"provider": "acme", "model": "m-1"}
    assert ask("post", "alert-rules/backtest", {**given, "days": 0}).status_code == 422


def test_silences_are_made_listed_and_ended(ask: Ask) -> None:
    end = (clock.now() + timedelta(hours=2)).isoformat()
    made = ask("post", "silences", {"filter": "model=m-1", "ends_at": end})
    assert made.status_code == 201
    number = made.json()["id"]
    assert [one["id"] for one in ask("get", "silences").json()["items"]] == [number]
    assert ask("delete", f"silences/{number}").status_code == 204
    assert ask("get", "silences").json()["items"] == []
    assert ask("post", "silences", {"ends_at": "yesterday"}).status_code == 422
    assert ask("post", "silences", {"ends_at": end, "rule_id": 0}).status_code == 422


def test_reading_keys_change_nothing(client: Client, project: Project, incident: Incident) -> None:
    key = issue_key(project, "r", [Scope.READ]).text
    headers = {"Authorization": f"Bearer {key}"}
    assert client.get("/api/v1/incidents", headers=headers).status_code == 200
    for path in (f"incidents/{incident.pk}/acknowledge", "alert-rules", "silences"):
        answer = client.post(f"/api/v1/{path}", headers=headers)
        assert answer.status_code == 403, path
