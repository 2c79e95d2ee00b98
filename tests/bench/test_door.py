"""The names that checks from outside use do what they say."""

import os
import subprocess
import sys
from datetime import timedelta

import pytest

from bench import door
from diagnostics import clock
from failsoft.json_values import JSON
from tests.checking import ROOT
from tests.diagnostics.builders import wire_event

MINUTES_OF_A_DAY = 24 * 60
FROM_OUTSIDE = """
import bench
from datetime import UTC, datetime
from bench import door
with door.database(datetime(2026, 11, 18, 15, tzinfo=UTC)):
    project = door.Project.create("p")
    print(project.get("verdict")["state"])
"""


@pytest.mark.django_db
def test_what_is_posted_is_counted_once_it_is_aggregated() -> None:
    project = door.Project.create("p")
    now = clock.now() - timedelta(minutes=5)
    project.post("events", [wire_event(occurred_at=now.isoformat()) for _ in range(3)])
    assert len(project.get("events")["items"]) == 3
    door.aggregate()
    (series,) = project.get("series", range="1h")["items"]
    assert series["model"] == wire_event()["model"]


@pytest.mark.django_db
def test_a_refused_item_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="events: 207"):
        door.Project.create("p").post("events", [{"name": "graph.plan.succeeded"}])


def test_one_answer_is_judged_without_a_database() -> None:
    schema: JSON = {"type": "object", "required": ["a"]}
    judged = door.judge_answer({"text": '{"b": 1}', "answer_schema": schema})
    assert (judged["ok"], judged["type"]) == (False, "schema_invalid")


def test_a_series_that_gets_worse_fires_once_and_clears() -> None:
    feed = door.SeriesFeed(2)
    for minute in range(2 * MINUTES_OF_A_DAY):
        is_bad = minute >= MINUTES_OF_A_DAY and minute < MINUTES_OF_A_DAY + 60
        feed.minute(0, minute * 60.0, 10, 0)
        feed.minute(1, minute * 60.0, 10, 9 if is_bad else 0)
    assert feed.alarms[0] == []
    (alarm,) = feed.alarms[1]
    begin = MINUTES_OF_A_DAY * 60.0
    assert abs(alarm.onset - begin) <= 120
    assert begin <= alarm.fired <= begin + 600
    assert alarm.cleared is not None
    assert alarm.cleared >= begin + 3600
    assert alarm.low <= alarm.onset <= alarm.high


@pytest.mark.nightly
def test_a_script_without_a_database_of_its_own_gets_one() -> None:
    own = ("FAILSOFT_", "DATABASE_URL", "BROKER_URL", "DJANGO_", "TESTS_HAVE_A_DATABASE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    done = subprocess.run(
        [sys.executable, "-c", FROM_OUTSIDE],
        cwd=ROOT,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["not_enough_data"], done.stderr
