"""Fix patterns by REST: read, decided, scoped to the project."""

import pytest

from agents.fix_patterns.models import FixPattern, FixPolicy
from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import AuditEntry, Project
from diagnostics.accounts.projects import issue_key
from tests.agents.conftest import Api


def make_pattern(project: Project, **fields: object) -> FixPattern:
    row: dict[str, object] = {
        "schema": "PlanPayload",
        "error_class": "schema_invalid",
        "code": "tool_missing",
        "pointer": "/steps/*/tool",
        "change": "added",
        "before": "nothing",
        "after": "object",
        "successes": 3,
        "last_success_at": clock.now(),
        **fields,
    }
    return FixPattern.objects.create(project=project, **row)


def test_s1_45_patterns_are_listed_with_and_without(api: Api, project: Project) -> None:
    make_pattern(project, told_runs=20, told_good=18, withheld_runs=5, withheld_good=1)

    body = api.get("fix-patterns").json()

    (item,) = body["items"]
    assert body["mode"] == "auto"
    assert item["says"] == "`steps[*].tool` is never left out: it is an object."
    assert (item["state"], item["successes"], item["needed"]) == ("active", 3, 3)
    assert item["told"]["rate"] == 0.9
    assert item["told"]["interval"] == pytest.approx([0.699, 0.972], abs=0.001)
    assert item["withheld"]["good"] == 1


@pytest.mark.parametrize(
    ("verb", "state", "decision"),
    [
        ("approve", "active", "approved"),
        ("reject", "rejected", "rejected"),
        ("expire", "expired", None),
    ],
)
def test_a_pattern_is_decided_and_says_by_whom(
    api: Api, project: Project, verb: str, state: str, decision: str | None
) -> None:
    row = make_pattern(project)

    body = api.post(f"fix-patterns/{row.pk}/{verb}").json()

    assert (body["state"], body["decision"]) == (state, decision)
    assert body["decided_by"].startswith("key tests (")


def test_the_policy_is_set_and_checked(api: Api, project: Project) -> None:
    assert api.put("fix-patterns/policy", {"mode": "approve"}).json() == {"mode": "approve"}
    assert FixPolicy.objects.get(project=project).mode == "approve"

    refused = api.put("fix-patterns/policy", {"mode": "often", "x": 1})

    assert refused.status_code == 422
    assert [item["path"] for item in refused.json()["errors"]] == ["/mode", "/x"]


def test_decisions_and_the_policy_are_entries_of_the_audit_log(api: Api, project: Project) -> None:
    row = make_pattern(project)

    for verb in ("approve", "reject", "expire"):
        api.post(f"fix-patterns/{row.pk}/{verb}")
    api.put("fix-patterns/policy", {"mode": "off"})

    entries = list(AuditEntry.objects.order_by("number"))
    assert [(entry.action, entry.target) for entry in entries] == [
        ("fix_pattern.approve", str(row)),
        ("fix_pattern.reject", str(row)),
        ("fix_pattern.expire", str(row)),
        ("fix_patterns.policy", "off"),
    ]
    assert all(entry.actor.startswith("key tests (") for entry in entries)


def test_a_pattern_of_another_project_is_not_there(api: Api) -> None:
    other = Project.objects.create(slug="other", name="Other")
    row = make_pattern(other)

    assert api.post(f"fix-patterns/{row.pk}/approve").status_code == 404
    assert api.get("fix-patterns").json()["items"] == []
    row.refresh_from_db()
    assert row.decision is None


@pytest.mark.parametrize("path", ["fix-patterns/1/burn", f"fix-patterns/{10**30}/reject"])
def test_what_is_not_there_is_not_found(api: Api, path: str) -> None:
    assert api.post(path).status_code == 404


def test_a_reading_key_decides_nothing(project: Project) -> None:
    row = make_pattern(project)
    reader = Api(issue_key(project, "reader", [Scope.READ]).text)

    assert reader.get("fix-patterns").status_code == 200
    assert reader.post(f"fix-patterns/{row.pk}/reject").status_code == 403
    assert reader.put("fix-patterns/policy", {"mode": "off"}).status_code == 403
