"""A rule of a project masks what is stored for it, whatever the way in."""

# ruff: noqa: F811 - fixtures of another folder
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from agents.goals.models import Attempt, Goal
from agents.llm.model_test import try_model
from agents.llm.models import ModelCheck
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.key_counts import note_items
from diagnostics.redaction.redactor import redact, redact_event
from diagnostics.redaction.rules import RedactionRule, forget_rules, texts_of
from plans.models.run import RunStep
from tests.agents.conftest import Planner, planner, tables_holding  # noqa: F401 - a fixture
from tests.security.test_typed_texts import bodies, forms, person, project  # noqa: F401 - fixtures

OWN = "CUST-48213"
MASKED = "[REDACTED:customer]"


@pytest.fixture(autouse=True)
def _own_rule(project: Project) -> Iterator[None]:
    rule = {"name": "customers", "kind": "customer", "pattern": "CUST-[0-9]+"}
    RedactionRule.objects.create(project=project, **rule)
    forget_rules()
    yield
    forget_rules()


def test_no_form_stores_what_a_rule_masks(project: Project, person: Client) -> None:
    for path, fields in forms(project, OWN).items():
        with transaction.atomic():
            answer = person.post(path, fields)
        assert answer.status_code in (200, 204, 302), path
        assert tables_holding(OWN) == [], path


def test_no_request_stores_what_a_rule_masks(project: Project) -> None:
    key = issue_key(project, "k", list(Scope)).text
    client = Client(headers={"Authorization": f"Bearer {key}"})
    plan = {"steps": [{"step_id": "step_1", "tool": "echo", "args": {"text": OWN}}]}
    for path, body in {**bodies(project, OWN), f"plans/runs?correlation_id={OWN}": plan}.items():
        answer = client.post(f"/api/v1/{path}", body, content_type="application/json")
        assert answer.status_code in (200, 201, 202), (path, answer.content)
        assert OWN not in answer.content.decode()
    assert tables_holding(OWN) == []
    # The next request of this thread may be about another project.
    assert redact(OWN) == OWN


def test_a_goal_keeps_nothing_that_a_rule_masks(planner: Planner) -> None:
    finish = {"kind": "finish", "answer": f"for {OWN}"}
    fail = {"kind": "call_tool", "tool": "fail", "args": {"message": f"no {OWN}"}}
    unknown = {"kind": "call_tool", "tool": OWN, "args": {}}
    planner.will_say(*map(json.dumps, (unknown, fail, finish)))
    said = {"text": f"VERDICT: COMPLETE - for {OWN}"}
    goal = planner.submit(
        constraints=[{"text": f"never for {OWN}", "optional": True}],
        completion_check={"kind": "tool", "tool": "echo", "args": said},
    )
    planner.finish(goal)
    goal.refresh_from_db()
    assert goal.constraints == [{"text": f"never for {MASKED}", "optional": True}]
    assert RunStep.objects.get().error == f"FailedOnPurposeError: no {MASKED}"
    assert Goal.objects.get().user_text.startswith(f"for {MASKED}")
    assert MASKED in str(Attempt.objects.filter(state="invalid").values_list("errors", flat=True))
    assert tables_holding(OWN) == []


def test_what_a_model_said_in_its_test_is_masked(planner: Planner) -> None:
    planner.will_say(f"ready {OWN}")
    model = planner.language_model
    ModelCheck.objects.create(language_model=model, project=model.project)
    try_model(model.pk)
    assert ModelCheck.objects.get().said == f"ready {MASKED}"


def test_sources_are_counted_under_masked_names(project: Project) -> None:
    note_items(issue_key(project, "k", list(Scope)).row, {(f"bot-{OWN}", "stored"): 1})
    assert tables_holding(OWN) == []


def test_a_log_line_asks_for_no_rules(project: Project, django_assert_num_queries: Any) -> None:
    with texts_of(project.pk), django_assert_num_queries(0):
        assert redact_event(None, "", {"event": OWN}) == {"event": OWN}
