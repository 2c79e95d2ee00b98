"""Five evaluators at once over two hundred minutes, thirty of them killed (C3, C10)."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from tests import embedded
from tests.faults.fleet import Fleet
from tests.faults.stack import ROOT

pytestmark = pytest.mark.faults

SLOTS, EVALUATORS, KILLS = 200, 5, 30
BEGIN = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=SLOTS + 90)
_SET_UP = """
import json, sys, django; django.setup()
from datetime import datetime, timedelta
from django.core.management import call_command
call_command("migrate", verbosity=0)
from diagnostics.alerting.saved_states import ensure_standard_rules
from diagnostics.accounts.models import Project
from tests.diagnostics.alert_calls import MINUTE, count_calls, count_degraded, degrade
project = Project.objects.create(slug="alerts", name="Alerts")
ensure_standard_rules()
count_degraded(project.pk)
begin = datetime.fromisoformat(sys.argv[1])
# Two troubles of one model, and one of another that has no calls but degraded runs.
shares = ([0.02] * 60 + [0.6] * 15 + [0.02] * 25) * 2 + [0.02] * 70
count_calls(project, begin - 60 * MINUTE, shares, 6, "m-1")
for minute in (20, 150):
    degrade(project, begin + minute * MINUTE, 3)
print(project.pk)
"""


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    """A database; no broker and no workers are needed."""
    with embedded.throw_away_folder() as folder, embedded.running_postgres() as url:
        yield Fleet(folder, url)


def start(fleet: Fleet, project: int) -> subprocess.Popen[bytes]:
    """Start one evaluator."""
    words = [str(project), BEGIN.isoformat(), str(SLOTS)]
    return subprocess.Popen(
        [sys.executable, str(ROOT / "tests/faults/alert_evaluator.py"), *words],
        cwd=ROOT,
        env={**fleet.env, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_c10_each_transition_happens_once_whoever_is_killed(fleet: Fleet) -> None:
    chance = Random(7)
    project = int(fleet.call(_SET_UP, BEGIN.isoformat()).split()[-1])
    running = [start(fleet, project) for _ in range(EVALUATORS)]
    try:
        for _ in range(KILLS):
            time.sleep(0.3)
            victim = chance.choice(running)
            victim.kill()
            victim.wait()
            running[running.index(victim)] = start(fleet, project)
        for one in running:
            assert one.wait(timeout=180) == 0
    finally:
        for one in running:
            one.kill()
            one.wait()
    slots = fleet.ask("SELECT slot, count(*) FROM diagnostics_alertslot GROUP BY 1")
    assert len(slots) == SLOTS
    assert {count for _, count in slots} == {1}
    happened = Counter(kind for (kind,) in fleet.ask("SELECT kind FROM diagnostics_transition"))
    fired = fleet.ask("SELECT count(*) FROM diagnostics_incident")[0][0]
    slices = fleet.ask("SELECT count(*) FROM diagnostics_incidentslice")[0][0]
    assert happened["fired"] == fired >= 2
    assert happened["fired"] + happened["joined"] == slices
    open_slices = fleet.ask(
        "SELECT state_id FROM diagnostics_incidentslice WHERE cleared_at IS NULL"
        " GROUP BY 1 HAVING count(*) > 1"
    )
    assert not open_slices
    looks = fleet.ask("SELECT state_id, count(*) FROM diagnostics_evaluation GROUP BY 1")
    assert all(count <= SLOTS for _, count in looks)
    assert max(count for _, count in looks) >= SLOTS - 5
