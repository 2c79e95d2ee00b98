"""How often verdicts were right and alarms false, as people say."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.incident_records import judged_of
from diagnostics.verdict.ratings import JUDGED_SPAN, VerdictMark

pytestmark = pytest.mark.django_db


def mark(project: Project, number: int, age: timedelta, *, is_right: bool) -> None:
    at = clock.now() - age
    VerdictMark.objects.create(
        project=project, cause="model", since=at, verdict={}, is_right=is_right,
        at=at, cause_value=str(number),
    )  # fmt: skip


def ended(project: Project, cause: str | None, age: timedelta) -> None:
    at = clock.now() - age
    Incident.objects.create(
        project=project, title="t", state="resolved", onset=at, fired_at=at, cleared_at=at,
        resolution_cause=cause,
    )  # fmt: skip


def judge(project: Project) -> None:
    day = timedelta(days=1)
    for number, is_right in enumerate([True, True, True, False]):
        mark(project, number, day, is_right=is_right)
    mark(project, 9, JUDGED_SPAN + day, is_right=False)
    for cause in ("model", "false_alarm", None):
        ended(project, cause, day)
    ended(project, "false_alarm", JUDGED_SPAN + day)


def test_shares_are_of_what_people_judged_in_the_last_90_days(project: Project) -> None:
    judge(project)
    judge(Project.objects.create(slug="q", name="Q"))
    found = judged_of(project.pk, clock.now())
    right, false = found["verdicts_right"], found["alarms_false"]
    assert (right.count, right.total) == (3, 4)
    assert (false.count, false.total) == (1, 2)
    assert right.chance is not None
    assert (round(right.chance.low, 3), round(right.chance.high, 3)) == (0.301, 0.954)
    every = judged_of(None, clock.now())
    assert (every["verdicts_right"].total, every["alarms_false"].total) == (8, 4)


def ask(project: Project) -> dict[str, Any]:
    key = issue_key(project, "k", [Scope.READ]).text
    answer = Client().get("/api/v1/verdict", headers={"Authorization": f"Bearer {key}"})
    found: dict[str, Any] = answer.json()["judged"]
    return found


def test_the_api_tells_the_shares_with_their_intervals(project: Project) -> None:
    nothing = {"count": 0, "total": 0, "share": None, "low": None, "high": None}
    assert ask(project) == {"verdicts_right": nothing, "alarms_false": nothing}
    judge(project)
    found = ask(project)
    assert found["verdicts_right"]["share"] == 0.75
    assert found["alarms_false"]["low"] < 0.5 < found["alarms_false"]["high"]


def test_metrics_tell_the_shares_once_something_was_judged(project: Project) -> None:
    assert "failsoft_judged_share{" not in Client().get("/metrics").content.decode()
    judge(project)
    told = Client().get("/metrics").content.decode()
    assert 'failsoft_judged{counted="so",what="verdicts_right"} 3.0' in told
    assert 'failsoft_judged{counted="all",what="alarms_false"} 2.0' in told
    assert 'failsoft_judged_share{bound="share",what="verdicts_right"} 0.75' in told
