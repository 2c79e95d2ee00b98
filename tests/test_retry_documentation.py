"""What the documents say of retries is what there is (S1-56, S1-58, S1-82, S1-92)."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agents.goals.models import Goal
from tests.agents.conftest import Api, Planner, work_off
from tests.agents.conftest import api as api
from tests.agents.conftest import planner as planner
from tests.agents.conftest import project as project
from tests.console import Role, make_member
from tests.requirements import names_in
from tests.security.addresses import all_addresses

TOP = Path(__file__).resolve().parent.parent
CHECKLIST = TOP / "docs/architecture/plan-retries.md"
DASHBOARD = TOP / "docs/grafana/failsoft.json"
TASKS = [f"{phase}.{n}" for phase, last in enumerate((4, 3, 3, 4, 3, 3), 1)
         for n in range(1, last + 1)]  # fmt: skip
OPTIONAL = {"4.4"}
UNIT = ("test_engine.py", "test_retry.py", "test_prompts.py")
REAL_MODEL = TOP / "tests/model/test_real_model.py"
PROSE = "Of course! First I would say hello."
CODE = re.compile(r"`([\w/.-]+/[\w.-]+\.\w+)`")


def rows() -> dict[str, str]:
    """The checklist by task."""
    found = re.findall(r"^\| (\d\.\d) (.*)$", CHECKLIST.read_text("utf-8"), re.MULTILINE)
    return dict(found)


def test_s1_92_every_task_names_its_code_and_its_tests_and_they_are_there() -> None:
    listed = rows()

    assert list(listed) == TASKS
    for task, row in listed.items():
        paths = CODE.findall(row)
        assert paths or task in OPTIONAL, task
        assert all((TOP / path).exists() for path in paths), row
        assert any(path.startswith("tests/") for path in paths) or task in OPTIONAL


def test_s1_82_there_are_as_many_unit_tests_of_retries_as_were_asked_for() -> None:
    names = [name for path in UNIT for name in names_in(TOP / "tests/failsoft/retry" / path)]

    assert len(names) >= 15


def test_s1_83_a_verb_runs_five_scenarios_or_more_on_a_real_model() -> None:
    scenarios = [name for name in names_in(REAL_MODEL) if "_s1_83_" in name]
    text = (TOP / "Makefile").read_text("utf-8")
    suite = re.findall(r"^SUITE := (.*)$", text, re.MULTILINE)
    found = re.findall(r"^([a-z-]+): [^\n]*\n\t(@.*?(?<!\\))$", text, re.MULTILINE | re.DOTALL)
    verbs = {name: recipe.replace("$(SUITE)", *suite) for name, recipe in found}

    assert "pytestmark = pytest.mark.model\n" in REAL_MODEL.read_text("utf-8")
    assert 5 <= len(scenarios) <= 10
    assert "-m model" in verbs["test-model"]
    assert all(
        "not model" in verbs[name] for name in ("test", "test-all", "coverage", "test-faults")
    )


def documented_lines() -> list[dict[str, Any]]:
    """The log lines of the guide."""
    text = (TOP / "docs/troubleshooting.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith('{"correlation_id"')]
    return [json.loads(line) for line in lines]


def test_s1_56_the_lines_in_the_guide_are_those_that_are_written(
    planner: Planner, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    good = '{"steps": [{"step_id": "step_1", "tool": "echo"}]}'
    planner.run(PROSE, good, goal="Say hello", mode="plan", correlation_id="case-7")
    planner.run(PROSE, PROSE, goal="No", mode="plan", correlation_id="case-8")
    planner.run(
        PROSE,
        PROSE,
        goal="No",
        mode="plan",
        correlation_id="case-9",
        retry={"use_stub_fallback": True},
    )
    records = [record.msg for record in caplog.records]
    written = [
        {key: value for key, value in line.items() if key != "timestamp"}
        for line in records
        if isinstance(line, dict)
    ]

    for line in documented_lines():
        del line["timestamp"]
        assert line in written


def metric_names(text: str) -> set[str]:
    """Names of ours in an expression or an exposition."""
    return set(re.findall(r"\b(?:failsoft|pdca)_\w+", text))


def test_s1_58_every_metric_of_the_dashboard_is_there(planner: Planner, api: Api) -> None:
    planner.run(PROSE, '{"kind": "finish", "answer": "ok"}')
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    asked = [t["expr"] for panel in panels for t in panel.get("targets", [])]

    assert panels
    assert set().union(*map(metric_names, asked)) <= metric_names(api.metrics())


def test_s1_71_nothing_on_a_failed_goals_page_plans_it_again(
    planner: Planner, client: Client
) -> None:
    client.force_login(make_member(planner.project, role=Role.ADMIN))
    planner.run({"text": PROSE, "repeat": True}, mode="plan", correlation_id="case-7")
    page = client.get("/runs/case-7/").content.decode()
    actions = set(re.findall(r'(?:action|hx-post)="(/[^"]*)"', page))

    for action in actions:
        client.post(action)
    work_off()

    assert "case-7" in page
    assert planner.calls == 2
    assert Goal.objects.count() == 1


def test_s1_71_no_address_is_about_retrying() -> None:
    routes = [address.route for address in all_addresses()]

    assert len(routes) > 100
    assert [route for route in routes if "retr" in route] == []
