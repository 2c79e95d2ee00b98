"""The faults: processes killed, the broker restarted or wiped, PostgreSQL stopped at once."""

import argparse
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random

from tests.faults.soak.servers import Database, KeptFleet
from tests.faults.stack import eventually

START_SECONDS = 180
# Of the broker's restarts so many empty it; of the kills so many take a whole worker.
WIPES_OF_TEN, GROUPS_OF_FIVE = 3, 1
KEEPING = ("--appendonly", "yes", "--appendfsync", "everysec")


class Trouble:
    """Makes the faults in random order, and counts those that have happened."""

    def __init__(
        self, fleet: KeptFleet, database: Database, workers: list[str], chance: Random
    ) -> None:
        self.fleet, self.database = fleet, database
        self.workers, self.chance = workers, chance
        self.done: Counter[str] = Counter()

    def plan(self, options: argparse.Namespace) -> list[Callable[[], None]]:
        """Return all faults in the order in which they will happen."""
        groups = options.kills * GROUPS_OF_FIVE // 5
        wipes = -(-options.brokers * WIPES_OF_TEN // 10)
        faults = [self.kill_child] * (options.kills - groups)
        faults += [self.kill_worker] * groups
        faults += [self.wipe_broker] * wipes
        faults += [self.restart_broker] * (options.brokers - wipes)
        faults += [self.restart_database] * options.databases
        self.chance.shuffle(faults)
        return faults

    def make(self, faults: list[Callable[[], None]]) -> Iterator[None]:
        """Let one fault happen for each turn of the caller."""
        for fault in faults:
            fault()
            self.done[fault.__name__] += 1
            time.sleep(self.chance.uniform(0.3, 1.2))
            yield

    def kill_child(self) -> None:
        """Kill a process that executes tasks."""
        assert eventually(lambda: bool(self._kill_one()), START_SECONDS)

    def _kill_one(self) -> bool:
        children = self.fleet.children(self.chance.choice(self.workers))
        # A worker forks its pool and one process more; the last is none of the pool.
        if len(children) < 2:
            return False
        with suppress(ProcessLookupError):
            os.kill(self.chance.choice(children), signal.SIGKILL)
            return True
        return False

    def kill_worker(self) -> None:
        """Kill a worker with all its processes, and start it anew."""
        name = self.chance.choice(self.workers)
        assert eventually(lambda: len(self.fleet.children(name)) > 1, START_SECONDS)
        self.fleet.kill_and_restart(name)

    def restart_broker(self) -> None:
        """Kill the broker; it comes back with what it had."""
        self._stop_broker()
        self.fleet.start_broker(*KEEPING)

    def wipe_broker(self) -> None:
        """Kill the broker: everything in it is gone."""
        self._stop_broker()
        shutil.rmtree(self.fleet.folder / "appendonlydir")
        self.fleet.start_broker(*KEEPING)

    def _stop_broker(self) -> None:
        self.fleet.stop_broker()
        time.sleep(self.chance.uniform(0.1, 1.0))

    def restart_database(self) -> None:
        """Stop PostgreSQL in the middle of everything."""
        self.database.stop()
        time.sleep(self.chance.uniform(0.1, 1.0))
        self.database.start()
