"""The rules of a model where the model is: their limits, what they measure, a new one."""

import html
import re

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.models import Membership, Project
from diagnostics.alerting.evaluator import evaluate_project
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.alerting.rule_rows import create_rule
from diagnostics.alerting.saved_states import ensure_standard_rules
from diagnostics.store.windows import floor
from diagnostics.templatetags.alerting import WatchedModels
from tests.console import make_member
from tests.diagnostics.alert_calls import MINUTE, count_calls

pytestmark = pytest.mark.django_db
RULE = {
    "name": "m-1 above 10 %",
    "filter": "provider=acme&model=m-1",
    "signal": "call_failure_ratio",
    "detector": "threshold",
    "parameters": {"limit": 0.1},
}


@pytest.fixture
def project(client: Client) -> Project:
    made = Project.objects.create(slug="p1", name="P1")
    client.force_login(make_member(made, role=Membership.Role.ADMIN))
    return made


def test_a_rule_that_is_begun_on_a_model_page_is_of_the_model_and_leads_back(
    project: Project, client: Client
) -> None:
    count_calls(project, clock.now() - 30 * MINUTE, [0.02] * 30, 60, "m-1")
    page = client.get("/models/acme/m-1/").content.decode()
    [begin] = re.findall(r'href="([^"]+)">New rule for this model', page)
    form = client.get(html.unescape(begin))
    assert form.context["form"].initial["detector"] == "threshold"
    given = {"name": "m-1", "signal": "call_failure_ratio", "detector": "threshold", "limit": "10"}
    given |= {"provider": "acme", "model": "m-1", "severity": "warning", "no_data": "clear"}
    answer = client.post(html.unescape(begin), {**given, "save": "1"})
    assert answer["Location"] == "/models/acme/m-1/#thresholds"
    row = AlertRule.objects.get(standard=None)
    assert (row.filter, row.parameters) == ("provider=acme&model=m-1", {"limit": 0.1})


def test_the_page_of_a_model_lists_the_rules_that_watch_it(
    project: Project, client: Client
) -> None:
    ensure_standard_rules()
    now = floor(clock.now(), MINUTE)
    count_calls(project, now - 30 * MINUTE, [0.5] * 30, 4, "m-1")
    count_calls(project, now - 30 * MINUTE, [0.0] * 30, 4, "m-10")
    create_rule(project.pk, RULE, None)
    create_rule(project.pk, {**RULE, "name": "of m-10 only", "filter": "model=m-10"}, None)
    evaluate_project(project.pk, now)
    mine = {one.rule.name: one for one in WatchedModels(project.pk, {}).rules_of("acme", "m-1")}
    assert set(mine) == {"Failure rate above baseline", "m-1 above 10 %"}
    alone = WatchedModels(project.pk, {"provider": "acme", "model": "m-1"})
    assert alone.rules_of("acme", "m-1") == list(mine.values())
    found = mine["m-1 above 10 %"]
    assert found.state == ("bad", "firing")
    assert found.says == "failed calls above 10\u202f%"
    assert found.current.endswith(" of 56")
    page = client.get("/models/acme/m-1/").content.decode()
    assert f"failed calls above 10\u202f% · now {found.current}" in page
    assert "of m-10 only" not in page
    matrix = client.get("/models/").content.decode()
    assert f"failed calls above 10\u202f%: {found.current}" in matrix
    assert matrix.count("failed calls above") == 1, "m-10 has a rule with no data"


def test_the_rules_of_all_models_are_read_with_two_queries(
    project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    create_rule(project.pk, RULE, None)
    with django_assert_num_queries(2):
        watched = WatchedModels(project.pk, {})
        for number in range(30):
            watched.rules_of("acme", f"m-{number}")


def test_a_rule_on_one_kind_counts_only_that_kind(project: Project) -> None:
    now = floor(clock.now(), MINUTE)
    count_calls(project, now - 30 * MINUTE, [0.5] * 30, 4, "m-1")
    for kind in ("truncated", "not_json"):
        create_rule(project.pk, {**RULE, "name": kind, "filter": f"kind={kind}"}, None)
    evaluate_project(project.pk, now)
    watching = WatchedModels(project.pk, {}).rules_of("acme", "m-1")
    states = {one.rule.name: one.state[1] for one in watching}
    assert (states["truncated"], states["not_json"]) == ("ok", "firing")
