"""Rules on a prompt version: what they count, what they refuse, and when they pass a minute."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting import slice_evaluation
from diagnostics.alerting.backtests import back_test
from diagnostics.alerting.evaluator import evaluate_project
from diagnostics.alerting.incident_models import IncidentSlice
from diagnostics.alerting.rule_models import AlertRule, Evaluation
from diagnostics.alerting.rule_rows import RuleError, create_rule
from diagnostics.ingest.api.outcomes import PostedOutcome, record_outcomes
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from diagnostics.store.windows import floor
from failsoft.events import PostedEvent
from tests.diagnostics.alert_calls import MINUTE
from tests.diagnostics.builders import succeeded, wire_event

pytestmark = pytest.mark.django_db
THRESHOLD = {"signal": "call_failure_ratio", "detector": "threshold"}
ON_V2 = {"name": "v2", "filter": "prompt_version=v2", **THRESHOLD}


@pytest.fixture
def now() -> datetime:
    return floor(clock.now(), MINUTE)


def post(project: Project, version: str, at: datetime, bad: int, good: int) -> None:
    """Record calls of one minute."""
    events = [
        make(
            provider="acme",
            model="m-1",
            prompt_version=version,
            correlation_id=f"{version}-{at.timestamp()}-{number}",
            occurred_at=(at + timedelta(milliseconds=number)).isoformat(),
        )
        for number, make in enumerate([wire_event] * bad + [succeeded] * good)
    ]
    record(project.pk, [PostedEvent.model_validate(one) for one in events])
    while fold():
        pass


def fired() -> list[tuple[str, int, int]]:
    rows = IncidentSlice.objects.order_by("rule__name")
    return list(rows.values_list("rule__name", "k", "n"))


def test_a_rule_on_a_prompt_version_counts_its_calls_alone(project: Project, now: datetime) -> None:
    create_rule(project.pk, ON_V2, None)
    create_rule(project.pk, {**ON_V2, "name": "v1", "filter": "prompt_version=v1"}, None)
    post(project, "v1", now, bad=1, good=59)
    post(project, "v2", now, bad=20, good=20)
    evaluate_project(project.pk, now)
    assert fired() == [("v2", 20, 40)]
    looks = Evaluation.objects.values_list("state__rule__name", "k", "n")
    assert sorted(looks) == [("v1", 1, 60), ("v2", 20, 40)]


def test_it_fires_where_its_back_test_fires(project: Project, now: datetime) -> None:
    post(project, "v1", now, bad=30, good=0)
    post(project, "v2", now, bad=20, good=20)
    for version, count in (("v1", 1), ("v2", 1), ("v3", 0)):
        given = {**THRESHOLD, "filter": f"prompt_version={version}"}
        found = back_test(project.pk, given, now + MINUTE)
        create_rule(project.pk, {**given, "name": version}, None)
        assert len(found.fires) == count
    evaluate_project(project.pk, now)
    assert fired() == [("v1", 30, 30), ("v2", 20, 40)]


def test_its_count_falls_out_of_the_window_as_it_ages(project: Project, now: datetime) -> None:
    given = {"name": "c", "signal": "call_failure_ratio", "filter": "prompt_version=v2"}
    create_rule(project.pk, {**given, "detector": "threshold"}, None)
    post(project, "v2", now, bad=20, good=30)
    evaluate_project(project.pk, now)
    evaluate_project(project.pk, now + 7 * 60 * MINUTE)
    first, *_, last = Evaluation.objects.order_by("slot")
    assert (first.n, last.n) == (50, 0)


def test_what_arrives_late_moves_no_rule_on_a_version(project: Project, now: datetime) -> None:
    create_rule(project.pk, ON_V2, None)
    post(project, "v2", now - 40 * MINUTE, bad=20, good=20)
    evaluate_project(project.pk, now)
    assert fired() == []


def test_kinds_narrow_a_rule_on_a_version_too(project: Project, now: datetime) -> None:
    create_rule(project.pk, {**ON_V2, "filter": "prompt:=v2 kind:refusal"}, None)
    post(project, "v2", now, bad=20, good=20)
    evaluate_project(project.pk, now)
    assert Evaluation.objects.get().k == 0


def test_posted_outcomes_count_for_their_version(project: Project, now: datetime) -> None:
    create_rule(project.pk, {**ON_V2, "signal": "degraded_ratio"}, None)
    for sequence, version in enumerate(["v1", "v2"]):
        told = {
            "source": "crm",
            "minute": now.isoformat(),
            "sequence": sequence,
            "node": "next_step",
            "provider": "acme",
            "model": "m-1",
            "prompt_version": version,
            "ok_first": 20,
            "degraded": 15,
            "stubbed": 5,
        }
        record_outcomes(project.pk, [PostedOutcome.model_validate(told)])
    fold()
    evaluate_project(project.pk, now)
    assert fired() == [("v2", 20, 40)]


def test_a_detector_of_many_days_is_refused_for_a_version_with_its_reason(project: Project) -> None:
    with pytest.raises(RuleError, match=r"refused: prompt:=v2 \(only threshold and count"):
        create_rule(project.pk, {**ON_V2, "detector": "change"}, None)


def test_a_signal_without_calls_does_not_know_versions(project: Project) -> None:
    given = {**ON_V2, "signal": "new_group", "detector": "count"}
    with pytest.raises(RuleError, match=r"refused: prompt:=v2$"):
        create_rule(project.pk, given, None)


def test_too_many_events_pass_the_minute_and_leave_other_rules_alone(
    project: Project, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_rule(project.pk, ON_V2, None)
    create_rule(project.pk, {"name": "all", **THRESHOLD}, None)
    post(project, "v2", now, bad=20, good=20)
    monkeypatch.setattr(slice_evaluation, "EVENTS_SECONDS", 0.0)
    evaluate_project(project.pk, now)
    assert fired() == [("all", 20, 40)]


def test_without_such_a_rule_no_event_is_read(project: Project, now: datetime) -> None:
    create_rule(project.pk, {"name": "all", **THRESHOLD}, None)
    post(project, "v2", now, bad=20, good=20)
    with CaptureQueriesContext(connection) as asked:
        evaluate_project(project.pk, now)
    assert AlertRule.objects.get().incident_slices.exists()
    assert not any("known_within" in one["sql"] or "AS is_call" in one["sql"] for one in asked)
