"""Burn-rate rules of an older version, as rules of change detection."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.evaluator import evaluate_project
from diagnostics.alerting.incident_models import Transition
from diagnostics.alerting.rule_models import AlertRule, AlertState
from diagnostics.alerting.rule_rows import create_rule
from diagnostics.store.windows import floor
from tests.diagnostics.alert_calls import MINUTE, count_calls

judge_by_change = import_module("diagnostics.migrations.0002_since_0_1_0").judge_by_change


@pytest.mark.django_db
def test_a_burn_rate_rule_becomes_a_change_rule_and_raises_and_ends_nothing_by_it() -> None:
    project = Project.objects.create(slug="p", name="P")
    begin = floor(clock.now(), MINUTE) - timedelta(hours=5)
    for model in ("m-1", "m-2"):
        count_calls(project, begin, iter([0.03] * 240 + [0.6] * 61), 4, model)
    given = {"name": "n" * 200, "signal": "call_failure_ratio", "detector": "change"}
    rule = create_rule(project.pk, {**given, "group_by": ["provider", "model"]}, None)
    evaluate_project(project.pk, begin + 249 * MINUTE)
    AlertState.objects.update(state="ok", detector_state={}, memory={})
    AlertState.objects.filter(slice__model="m-1").update(state="firing")
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(
            "ALTER TABLE diagnostics_alertrule DROP CONSTRAINT diagnostics_alertrule_detector_known"
        )
    AlertRule.objects.filter(pk=rule.pk).update(
        detector="burn", parameters={"budget": 0.05, "factor": 10.0}
    )
    changes = Transition.objects.count()

    judge_by_change(apps, None)
    evaluate_project(project.pk, begin + 250 * MINUTE)

    upgraded = AlertRule.objects.get(pk=rule.pk)
    assert (upgraded.detector, upgraded.parameters) == ("change", {})
    assert upgraded.name == "n" * 177 + " (was a burn-rate rule)"
    states = AlertState.objects.filter(rule=rule)
    assert {row.slice["model"]: row.state for row in states} == {"m-1": "firing", "m-2": "ok"}
    assert Transition.objects.count() == changes
    assert all("learned" in row.memory for row in states)
