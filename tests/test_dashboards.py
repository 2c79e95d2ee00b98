"""The Grafana dashboard and the Prometheus rules ask only for what /metrics shows."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.store.models import Heartbeat
from tests.agents.conftest import Planner
from tests.agents.conftest import api as api
from tests.agents.conftest import planner as planner
from tests.agents.conftest import project as project
from tests.console import post_events
from tests.diagnostics.builders import degraded, succeeded, wire_event

DOCS = Path(__file__).resolve().parent.parent / "docs"
DASHBOARD = json.loads((DOCS / "grafana/failsoft.json").read_text("utf-8"))
RULES = yaml.safe_load((DOCS / "prometheus/failsoft.rules.yaml").read_text("utf-8"))
NAME = re.compile(r"\b(?:failsoft|pdca)_\w+")
SELECTOR = re.compile(r"\b((?:failsoft|pdca)_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')
GROUPED = re.compile(r"\bby \(([^)]*)\)")
DURATION = re.compile(r"\d+[smhd]")
KINDS = {"timeseries", "stat", "row"}
Metrics = dict[str, set[str]]


def expressions() -> Iterator[tuple[str, str]]:
    """Every expression, with where it stands."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']}", target["expr"]
    for rule in rules():
        yield f"rule {rule['alert']}", rule["expr"]


def rules() -> list[dict[str, Any]]:
    return [rule for group in RULES["groups"] for rule in group["rules"]]


EXPRESSIONS = dict(expressions())


@pytest.fixture
def shown(planner: Planner, project: Project) -> Metrics:
    """What /metrics shows after some work: names of samples, each with its labels."""
    planner.run("no json", '{"kind": "finish", "answer": "ok"}')
    events = [wire_event(), degraded(), succeeded(input_tokens=3, latency_ms=120)]
    post_events(project, *events)
    Heartbeat.objects.create(name="beat", at=clock.now())
    answer = Client().get("/metrics").content.decode()
    found: Metrics = {}
    for family in text_string_to_metric_families(answer):
        # A family without a sample yet still says which name it has.
        found.setdefault(family.name, set())
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.django_db
def test_every_metric_that_is_asked_for_is_shown(shown: Metrics) -> None:
    for where, expression in EXPRESSIONS.items():
        assert NAME.search(expression), where
        assert set(NAME.findall(expression)) <= shown.keys(), where


@pytest.mark.django_db
def test_every_label_that_is_asked_for_is_one_of_its_metric(shown: Metrics) -> None:
    for where, expression in EXPRESSIONS.items():
        for metric, matchers in SELECTOR.findall(expression):
            if shown[metric]:
                assert set(MATCHER.findall(matchers)) <= shown[metric], where


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_expressions_are_balanced_and_group_by_known_labels(expression: str) -> None:
    for opened, closed in ("()", "[]", "{}"):
        assert expression.count(opened) == expression.count(closed)
    known = {"provider", "model", "kind", "outcome", "type", "direction", "le"}
    for labels in GROUPED.findall(expression):
        assert {label.strip() for label in labels.split(",")} <= known


def test_the_dashboard_can_be_imported() -> None:
    panels = DASHBOARD["panels"]
    ids = [panel["id"] for panel in panels]
    assert len(ids) == len(set(ids))
    assert {panel["type"] for panel in panels} == KINDS
    assert DASHBOARD["uid"] == "failsoft"
    names = [variable["name"] for variable in DASHBOARD["templating"]["list"]]
    assert names == ["datasource", "provider", "model"]
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert all(target["expr"] for target in panel["targets"])


def test_panels_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_rule_says_how_long_how_bad_and_what_it_means() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) >= 10
    for rule in rules():
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert DURATION.fullmatch(rule["for"])
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
        assert set(rule["annotations"]) == {"summary", "description"}
        assert re.search(r"[<>]|absent\(", rule["expr"])


def test_there_is_one_dashboard() -> None:
    assert [
        path.name for path in DOCS.rglob("*.json") if '"panels"' in path.read_text("utf-8")
    ] == ["failsoft.json"]
