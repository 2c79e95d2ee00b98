"""Workers, beat and servers of a test's own, to be killed one by one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import psycopg

from config.local import broker
from tests import embedded
from tests.faults.stack import ROOT, eventually

LEASE_SECONDS = 3.0
# Far below what a step may take: messages come back while their step is at work (C1).
VISIBILITY_SECONDS = 2
CELERY = ("celery", "-A", "config.celery")
_SUBMIT = """
import json, sys, django; django.setup()
from diagnostics.accounts.models import Project
from plans.runs.submission import submit_run
project, _ = Project.objects.get_or_create(slug="faults", defaults={"name": "Faults"})
for given in json.load(sys.stdin):
    print(submit_run(project.pk, given["plan"], None, runner=given["runner"]).pk)
"""
_CANCEL = """
import sys, uuid, django; django.setup()
from plans.models.run import Run
from plans.runs.submission import cancel_run
run = Run.objects.get(pk=sys.argv[1])
print(cancel_run(run.project_id, run.pk))
"""


class Fleet:
    """Processes around one database and one broker."""

    def __init__(self, folder: Path, database_url: str, broker_url: str | None = None) -> None:
        self.folder = folder
        self.socket = folder / "broker.sock"
        self.has_own_broker = broker_url is None
        self.database_url = database_url
        (folder / "keys").mkdir()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._words: dict[str, tuple[str, ...]] = {}
        self._broker: ExitStack = ExitStack()
        self.env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
            "DATABASE_URL": database_url,
            "BROKER_URL": broker_url or broker.broker_url(self.socket),
            "FAULTS_FOLDER": str(folder),
            "FAILSOFT_RUN_LEASE_SECONDS": str(LEASE_SECONDS),
            "FAILSOFT_BROKER_VISIBILITY_SECONDS": str(VISIBILITY_SECONDS),
            "CELERY_SKIP_CHECKS": "1",
        }

    def start_broker(self, *options: str) -> None:
        """Start a broker at the same address as before: empty, if `options` do not keep."""
        command = [*broker.server_command(self.folder, self.socket), *options]
        log = self.folder / "broker.log"
        running = embedded.running(command, self.socket, log, signal.SIGKILL)
        self._broker.enter_context(running)

    def stop_broker(self) -> None:
        """Kill the broker with everything in it."""
        self._broker.close()
        self.socket.unlink(missing_ok=True)

    def start_worker(self, name: str, queues: str, children: int) -> None:
        """Start a worker of these queues."""
        words = ["worker", "--queues", queues, "--concurrency", str(children)]
        words += ["--hostname", f"{name}@test", "--loglevel", "WARNING"]
        self._start(name, *CELERY, *words, "--without-gossip", "--without-mingle")

    def start_beat(self) -> None:
        """Start the clock."""
        self._start("beat", *CELERY, "beat", "--pidfile=")

    def _start(self, name: str, *words: str) -> None:
        self._words[name] = words
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=ROOT,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop_worker(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """Ask a worker to end, or kill it and all its children."""
        process = self.processes.pop(name)
        if number is signal.SIGKILL:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        process.wait(timeout=60)

    def children(self, name: str) -> list[int]:
        """Return the processes of a worker that execute tasks."""
        worker = self.processes[name].pid
        path = Path(f"/proc/{worker}/task/{worker}/children")
        with suppress(OSError):
            return [int(pid) for pid in path.read_text(encoding="utf-8").split()]
        return []

    def kill_child(self, name: str, chance: Random) -> None:
        """Kill -9 one of the processes that execute tasks."""
        assert eventually(lambda: len(self.children(name)) > 1, 120)
        with suppress(ProcessLookupError):
            os.kill(chance.choice(self.children(name)), signal.SIGKILL)

    def submit(self, *plans: tuple[dict[str, Any], str]) -> list[UUID]:
        """Submit plans, each for a runner; return their runs."""
        given = [{"plan": plan, "runner": runner} for plan, runner in plans]
        said = self.call(_SUBMIT, given=given)
        return [UUID(line) for line in said.split()]

    def cancel(self, run: UUID) -> None:
        """Cancel a run."""
        self.call(_CANCEL, str(run))

    def call(self, code: str, *words: str, given: object = None) -> str:
        """Run a few lines of Python in the product's environment."""
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            cwd=ROOT,
            env=self.env,
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, query: str, *given: object) -> list[tuple[Any, ...]]:
        """Read the database."""
        with psycopg.connect(self.database_url) as connection:
            return connection.execute(query, given).fetchall()

    def noted(self, kind: str, prefix: str = "") -> list[str]:
        """Return the lines that tools have left."""
        with suppress(FileNotFoundError):
            lines = (self.folder / kind).read_text(encoding="utf-8").splitlines()
            return [line for line in lines if line.startswith(prefix)]
        return []

    def await_end(self, runs: list[UUID], seconds: float = 240) -> None:
        """Wait until runs have ended."""
        query = "SELECT id, state, starts FROM plans_run WHERE id = ANY(%s) AND meta IS NULL"

        def have_ended() -> bool:
            self._restart_ended()
            return not self.ask(query, runs)

        assert eventually(have_ended, seconds), (self.ask(query, runs), self.tail())

    def _restart_ended(self) -> None:
        """Restart what ended by itself, as a supervisor does: a stalled worker ends (C9)."""
        for name, process in list(self.processes.items()):
            if process.poll() is not None:
                self._start(name, *self._words[name])

    def tail(self) -> str:
        """Return the last lines of every log."""
        return "\n".join(
            f"{path.name}: {path.read_text(encoding='utf-8', errors='replace')[-1500:]}"
            for path in self.folder.glob("*.log")
        )

    def end(self) -> None:
        """Leave nothing behind."""
        for process in self.processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=10)
        self._broker.close()


@contextmanager
def started(folder: Path, broker_url: str | None = None) -> Iterator[Fleet]:
    """A fleet with one worker of two processes, upkeep and beat."""
    with embedded.running_postgres() as url:
        fleet = Fleet(folder, url, broker_url)
        fleet.call(
            "import django; django.setup();"
            "from django.core.management import call_command as c;"
            "c('migrate', verbosity=0)"
        )
        try:
            if fleet.has_own_broker:
                fleet.start_broker()
            fleet.start_worker("worker", "plan,steps", 2)
            fleet.start_worker("upkeep", "fold,notify,report", 1)
            fleet.start_beat()
            soon(lambda: len(fleet.children("worker")) > 1, 90)
            yield fleet
        finally:
            fleet.end()


def soon(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until something has happened."""
    assert eventually(condition, seconds)
    time.sleep(0.05)
