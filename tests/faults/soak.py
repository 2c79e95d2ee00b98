"""The long form of the fault tests: many runs under many faults, with figures.

    python -m tests.faults.soak [--runs 200] [--kills 50] [--brokers 10]
        [--databases 5] [--workers 2] [--seconds 900]

Half of the runs are inline, half distributed, five steps each, whose effects are counted
from outside. Children and whole workers are killed, the broker is restarted and wiped,
PostgreSQL is stopped in the middle. Exits with 1 when anything is lost, doubled or left.
"""

import argparse
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from random import Random
from uuid import UUID

import psycopg

from config.local import postgres
from tests import embedded
from tests.faults.fleet import Fleet
from tests.faults.stack import eventually
from tests.faults.test_runs import RUNNERS, STEPS, names, plan

START_SECONDS = 120


def _has_children(fleet: Fleet, name: str) -> bool:
    return len(fleet.children(name)) > 1


class Database:
    """A PostgreSQL that can be stopped at once and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sockets = folder, folder / "s"
        self.sockets.mkdir(mode=0o700)
        postgres.initialise(folder / "pg")
        self._running = ExitStack()
        self.url = postgres.database_url(self.sockets)

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        command = postgres.server_command(self.folder / "pg", self.sockets)
        socket = self.sockets / ".s.PGSQL.5432"
        running = embedded.running(
            command, socket, self.folder / "pg.log", signal.SIGQUIT
        )
        self._running.enter_context(running)
        assert eventually(lambda: postgres.ensure_database(self.sockets), 30)

    def stop(self) -> None:
        """Stop it without a word to anybody."""
        self._running.close()


class Soak:
    """The fleet, its faults and what became of them."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.chance = Random(options.seed)
        self.database = Database(folder)
        self.database.start()
        self.fleet = Fleet(folder, self.database.url)
        self.workers = [f"worker{number}" for number in range(options.workers)]
        self.faults: Counter[str] = Counter()

    def start(self) -> None:
        """Migrate and start everybody."""
        fleet = self.fleet
        fleet.call(
            "import django; django.setup();"
            "from django.core.management import call_command as c;"
            "c('migrate', verbosity=0)"
        )
        fleet.start_broker()
        for name in self.workers:
            fleet.start_worker(name, "plan,steps", 2)
        fleet.start_worker("upkeep", "fold", 1)
        fleet.start_beat()
        for name in self.workers:
            has_children = partial(_has_children, fleet, name)
            assert eventually(has_children, START_SECONDS)

    def submit(self) -> list[UUID]:
        """Submit all runs at once."""
        return self.fleet.submit(
            *(
                (plan("keyed", *names(f"soak{n}"), before=0.1), RUNNERS[n % 2])
                for n in range(self.options.runs)
            )
        )

    def make_trouble(self, is_over: Callable[[], bool]) -> None:
        """Let the faults happen in random order until they or the runs are over."""
        options = self.options
        faults = [self.kill_child] * (options.kills - options.kills // 5)
        faults += [self.kill_worker] * (options.kills // 5)
        faults += [self.restart_broker] * options.brokers
        faults += [self.restart_database] * options.databases
        self.chance.shuffle(faults)
        until = time.monotonic() + options.seconds / 2
        for fault in faults:
            if is_over() or time.monotonic() > until:
                break
            fault()
            self.faults[fault.__name__] += 1
            time.sleep(self.chance.uniform(0.3, 1.2))

    def kill_child(self) -> None:
        """Kill a process that executes tasks."""
        children = self.fleet.children(self.chance.choice(self.workers))
        if children:
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(children), signal.SIGKILL)

    def kill_worker(self) -> None:
        """Kill a worker with all its processes, and start it anew."""
        name = self.chance.choice(self.workers)
        self.fleet.stop_worker(name, signal.SIGKILL)
        self.fleet.start_worker(name, "plan,steps", 2)

    def restart_broker(self) -> None:
        """Kill the broker: everything in it is gone."""
        self.fleet.stop_broker()
        time.sleep(self.chance.uniform(0.1, 1.0))
        self.fleet.start_broker()

    def restart_database(self) -> None:
        """Stop PostgreSQL in the middle of everything."""
        self.database.stop()
        time.sleep(self.chance.uniform(0.1, 1.0))
        self.database.start()

    def are_over(self, runs: list[UUID]) -> bool:
        """Whether all runs have ended."""
        query = "SELECT 1 FROM plans_run WHERE id = ANY(%s) AND meta IS NULL LIMIT 1"
        with suppress(psycopg.OperationalError):
            return not self.fleet.ask(query, runs)
        return False

    def judge(self, runs: list[UUID]) -> bool:
        """Print the figures; whether all is well."""
        ask = self.fleet.ask
        query = "SELECT runner, state, task_status, count(*) FROM plans_run GROUP BY 1, 2, 3"
        for row in ask(query):
            say(*row)
        effects = Counter(self.fleet.noted("effects", "soak"))
        lost = len(runs) * STEPS - len(effects)
        doubled = sum(count - 1 for count in effects.values())
        calls = len(self.fleet.noted("calls"))
        say("effects", len(effects), "lost", lost, "doubled", doubled, "calls", calls)
        leases = "SELECT count(*) FROM plans_runstep WHERE lease_until IS NOT NULL"
        waiting = "SELECT count(*) FROM diagnostics_outboxmessage WHERE sent_at IS NULL"
        eventually(lambda: ask(waiting) == [(0,)], 30)
        left = ask(leases)[0][0], ask(waiting)[0][0]
        say("leases left", left[0], "messages left", left[1])
        open_runs = ask("SELECT count(*) FROM plans_run WHERE meta IS NULL")[0][0]
        say("runs left", open_runs, "faults", dict(self.faults))
        return not (lost or doubled or any(left) or open_runs)


def say(*words: object) -> None:
    """Print a line."""
    print(*words, flush=True)  # noqa: T201 - a command


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser()
    for name, default in (
        ("runs", 200),
        ("kills", 50),
        ("brokers", 10),
        ("databases", 5),
        ("workers", 2),
        ("seconds", 900),
        ("seed", 4),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    os.environ.update(embedded.settings_for_tests())
    with embedded.throw_away_folder() as folder:
        soak = Soak(options, folder)
        try:
            soak.start()
            begun = time.monotonic()
            runs = soak.submit()
            soak.make_trouble(lambda: soak.are_over(runs))
            say("faults over after", round(time.monotonic() - begun), "s")
            eventually(lambda: soak.are_over(runs), options.seconds / 2)
            say("runs over after", round(time.monotonic() - begun), "s")
            fine = soak.judge(runs)
        finally:
            soak.fleet.end()
            soak.database.stop()
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
