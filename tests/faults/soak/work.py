"""The work of the soak: runs handed in, and goals that the stub plans, in both runners."""

import time
from dataclasses import dataclass, field

from tests.faults.soak.asking import Client
from tests.faults.test_runs import RUNNERS, names, plan

TRIES = 600


@dataclass
class Work:
    """What was acknowledged: the runs' names of effects, and the goals' numbers."""

    client: Client
    runs: dict[str, list[str]] = field(default_factory=dict)
    goals: dict[int, str] = field(default_factory=dict)
    goal_seconds: int = 3600

    def submit_run(self, number: int) -> None:
        """Hand in a plan of five steps; each try has names of its own."""
        runner = RUNNERS[number % 2]
        for attempt in range(TRIES):
            effects = names(f"soak{number}x{attempt}")
            body = plan("keyed", *effects, before=0.1)
            told = self.client.post_once(f"/api/v1/plans/runs?runner={runner}", body)
            if told is not None:
                self.runs[told["run_id"]] = effects
                return
            time.sleep(0.2)
        raise AssertionError(f"no run is accepted: {self.client.refused[-1:]}")

    def submit_goal(self, number: int) -> None:
        """Submit a goal; sent again it is the same one."""
        body = {
            "goal": f"soak goal {number}",
            "runner": RUNNERS[number % 2],
            "max_iterations": 1,
            "correlation_id": f"soak-goal-{number}",
            "budget": {"seconds": self.goal_seconds},
        }
        key = {"Idempotency-Key": f"soak-{number}"}
        self.goals[number] = self.client.post("/api/v1/goals", body, **key)["id"]
