"""POST /api/v1/lab/replay."""

from datetime import timedelta

import pytest

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.failures.models import FailureGroup
from tests.agents.conftest import Api
from tests.console import post_and_fold
from tests.diagnostics.builders import wire_event


def make_group(project: Project, *texts: str) -> FailureGroup:
    at = clock.now() - timedelta(hours=2)
    events = [wire_event(occurred_at=at.isoformat(), raw_output_preview=text) for text in texts]
    post_and_fold(project, *events)
    return FailureGroup.objects.get(project=project)


def test_samples_are_read_again_and_counted(project: Project, api: Api) -> None:
    group = make_group(project, "Sure: {'a': 1}", '{"a": 1}', "none")

    told = api.post("lab/replay", {"failure": group.pk, "schema": "none"}).json()

    assert (told["total"], told["recovered"], told["cut"]) == (3, 2, 0)
    assert told["low"] == pytest.approx(0.2077, abs=1e-4)
    assert told["high"] == pytest.approx(0.9385, abs=1e-4)
    assert sorted(one["ok"] for one in told["samples"]) == [False, True, True]
    assert {one["was"] for one in told["samples"]} == {"not_json"}


def test_parser_and_schema_are_chosen(project: Project, api: Api) -> None:
    group = make_group(project, "Sure: {'a': 1}", '{"a": 1}')
    body = {"failure": group.pk, "schema": "none"}

    strict = api.post("lab/replay", {**body, "recover": False}).json()
    schema = {"type": "object", "required": ["b"]}
    own = api.post("lab/replay", {**body, "schema": "pasted", "json_schema": schema}).json()
    recent = api.post("lab/replay", {**body, "range": "1h"}).json()

    assert strict["recovered"] == 1
    assert own["recovered"] == 0
    assert own["samples"][0]["errors"][0]["code"] == "missing"
    assert (recent["total"], recent["share"]) == (0, None)


def test_what_is_wrong_is_named(project: Project, api: Api) -> None:
    group = make_group(project, "x")
    good = {"failure": group.pk}

    for body, path in (
        ({}, "/failure"),
        ({**good, "schema": "node:other"}, "/schema"),
        ({**good, "schema": "node:\0"}, "/schema"),
        ({**good, "schema": "pasted", "json_schema": {"type": "poem"}}, "/json_schema"),
        ({**good, "range": "2y"}, "/range"),
    ):
        answer = api.post("lab/replay", body)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["path"].startswith(path)


def test_groups_of_others_and_none_are_not_found(project: Project, api: Api) -> None:
    other = Project.objects.create(slug="o", name="Other")
    theirs = make_group(other, "x")

    for number in (theirs.pk, 999_999):
        assert api.post("lab/replay", {"failure": number}).status_code == 404
