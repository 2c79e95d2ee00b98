"""A broker that takes a message back while its task is still at work."""

import pytest

from tests import embedded
from tests.faults.fleet import started
from tests.services.rabbitmq import running_rabbitmq

pytestmark = pytest.mark.services

CONSUMER_TIMEOUT_MS, TICK_MS = 10_000, 1_000
STEP_SECONDS = 25


def test_c6_a_step_longer_than_the_consumer_timeout_has_one_effect() -> None:
    with (
        embedded.throw_away_folder() as folder,
        running_rabbitmq(
            folder, consumer_timeout=CONSUMER_TIMEOUT_MS, channel_tick_interval=TICK_MS
        ) as url,
        started(folder, url) as fleet,
    ):
        runs = fleet.submit(
            *((_step(name, STEP_SECONDS), name) for name in ("inline", "distributed"))
        )
        fleet.await_end(runs)
        query = "SELECT task_status FROM plans_run WHERE id = ANY(%s)"
        assert fleet.ask(query, runs) == [("COMPLETED",)] * 2
        assert sorted(fleet.noted("effects")) == ["distributed", "inline"]
        log = (folder / "worker.log").read_text(encoding="utf-8")
        assert "acknowledgement on channel 1 timed out" in log, "nothing was tried"
        assert fleet.processes["worker"].poll() is None, log
        after = fleet.submit((_step("after", 0), "inline"))
        fleet.await_end(after)
        assert sorted(fleet.noted("effects")) == ["after", "distributed", "inline"]


def _step(name: str, seconds: float) -> dict[str, object]:
    args = {"name": name, "after": seconds}
    return {"steps": [{"step_id": "step_1", "tool": {"name": "patient", "args": args}}]}
