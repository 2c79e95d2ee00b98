"""The broker goes away again and again; every queue is worked at soon after it is back (C5, C13).

BROKER_LOSSES=10 makes it longer.
"""

import os
import time
from collections.abc import Iterator
from random import Random

import pytest

from tests import embedded
from tests.faults.soak.servers import Database, KeptFleet
from tests.faults.soak.trouble import KEEPING
from tests.faults.stack import eventually
from tests.faults.test_runs import RUNNERS, names, plan, statuses

pytestmark = pytest.mark.faults

LOSSES = int(os.environ.get("BROKER_LOSSES", "3"))
CONSUMING_SECONDS = 30.0
START_SECONDS = 180.0
# A message that went through the broker and a worker of each kind.
PARTS = ("worker", "queue:plan", "queue:steps")
SEEN_SINCE = (
    "SELECT count(*) FROM diagnostics_heartbeat WHERE name = ANY(%s) AND at > to_timestamp(%s)"
)
FLOOD = 300
UPKEEP_SECONDS = 20.0
UPKEEP_AGE = (
    "SELECT extract(epoch FROM now() - at) FROM diagnostics_heartbeat WHERE name = 'evaluator'"
)


@pytest.fixture(scope="module")
def fleet() -> Iterator[KeptFleet]:
    """Workers as they are deployed: two groups of queues, started again when they end."""
    with embedded.throw_away_folder() as folder:
        database = Database(folder)
        database.start()
        fleet = KeptFleet(folder, database.url)
        try:
            fleet.migrate()
            fleet.start_broker(*KEEPING)
            fleet.start_worker("worker", "plan,steps", 2)
            fleet.start_worker("upkeep", "fold,notify,report", 1)
            fleet.start_beats(1)
            assert all_consume_since(fleet, 0.0, START_SECONDS), fleet.tail()
            yield fleet
        finally:
            fleet.end()
            database.stop()


def all_consume_since(fleet: KeptFleet, moment: float, seconds: float) -> bool:
    """Whether each kind of worker takes a message after the moment, in time."""

    def all_seen() -> bool:
        return fleet.ask(SEEN_SINCE, list(PARTS), moment) == [(len(PARTS),)]

    return eventually(all_seen, seconds)


def test_c5_all_queues_are_worked_at_within_half_a_minute_of_a_lost_broker(
    fleet: KeptFleet,
) -> None:
    chance = Random(5)
    for loss in range(LOSSES):
        time.sleep(chance.uniform(1, 3))
        fleet.stop_broker()
        time.sleep(chance.uniform(0.2, 1))
        fleet.start_broker(*KEEPING)
        back = time.time()
        assert all_consume_since(fleet, back, CONSUMING_SECONDS), (loss, fleet.tail())


def test_c13_a_flood_of_plans_keeps_nobody_from_looking_at_alerts(fleet: KeptFleet) -> None:
    runs = fleet.submit(
        *((plan("keyed", *names(f"flood{number}")), RUNNERS[number % 2]) for number in range(FLOOD))
    )
    oldest = 0.0
    while fleet.ask("SELECT 1 FROM plans_run WHERE meta IS NULL LIMIT 1"):
        oldest = max(oldest, float(fleet.ask(UPKEEP_AGE)[0][0]))
        time.sleep(0.5)
    assert statuses(fleet, runs) == {"COMPLETED": FLOOD}
    # Minutes are looked at every ten seconds, flood or not.
    assert oldest < UPKEEP_SECONDS
