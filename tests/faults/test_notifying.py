"""Senders of notifications are killed while they send: each arrives, under one key, recorded once.

NOTIFYING_KILLS=30 makes it longer.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import psycopg
import pytest

from tests import embedded
from tests.diagnostics.alerting.notifications.building import Hook, receiving
from tests.faults.stack import ROOT, eventually

pytestmark = pytest.mark.faults

KILLS = int(os.environ.get("NOTIFYING_KILLS", "6"))
INCIDENTS = 60
SET_UP = """
import sys, django; django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from diagnostics.accounts.models import Project
from tests.diagnostics.alerting.notifications.building import (
    happen,
    make_channel,
    make_incident,
    make_rule,
)
project = Project.objects.create(slug="faults", name="Faults")
make_channel(project, "webhook", sys.argv[1], digest_above=1000)
rule = make_rule(project)
for number in range(int(sys.argv[2])):
    incident = make_incident(project, f"m-{number}", rule=rule)
    happen(incident)
    happen(incident, "cleared")
"""
SEND = """
import time, django; django.setup()
from diagnostics.alerting.delivery import deliver_all
print("ready", flush=True)
while True:
    deliver_all(5)
    time.sleep(0.05)
"""


class Senders:
    """Processes that send, to be killed."""

    def __init__(self, database_url: str) -> None:
        self.env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "DATABASE_URL": database_url,
            "FAILSOFT_HTTP_ALLOW_PRIVATE": "true",
        }
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start one and wait until it is at it."""
        process = subprocess.Popen(
            [sys.executable, "-c", SEND],
            cwd=ROOT,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        self.running.append(process)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill -9 one of them."""
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
        if process.stdout is not None:
            process.stdout.close()
        self.running.remove(process)

    def end(self) -> None:
        """Leave none behind."""
        for process in list(self.running):
            self.kill(process)


@pytest.fixture
def hook() -> Iterator[tuple[Hook, str]]:
    with receiving() as found:
        found[0].slow = 0.02
        yield found


def test_killed_senders_lose_nothing_and_keep_the_keys(hook: tuple[Hook, str]) -> None:
    chance = Random(7)
    with embedded.running_postgres() as url:
        senders = Senders(url)
        subprocess.run(
            [sys.executable, "-c", SET_UP, hook[1], str(INCIDENTS)],
            cwd=ROOT,
            env=senders.env,
            check=True,
            timeout=120,
        )
        try:
            senders.start()
            for _ in range(KILLS):
                time.sleep(chance.uniform(0.1, 0.5))
                senders.kill(chance.choice(senders.running))
                senders.start()
            let_leases_run_out(url)
            senders.end()
            senders.start()
            assert eventually(lambda: count(url, "queued") == 0, 180)
        finally:
            senders.end()
        keys = {str(key) for (key,) in ask(url, "SELECT key FROM diagnostics_notification")}
        arrived = Counter(headers["webhook-id"] for headers, _ in hook[0].seen)
        assert count(url, "sent") == len(keys) == 2 * INCIDENTS
        assert set(arrived) == keys
        # Twice at most where a sender was killed between sending and recording.
        assert sum(arrived.values()) - len(keys) <= KILLS + 1
        assert in_order(hook[0])


def let_leases_run_out(url: str) -> None:
    """Move the database's clock on for whoever connects from now on."""
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE \"{name}\" SET failsoft.clock_shift = '3 minutes'")


def ask(url: str, query: str) -> list[tuple[object, ...]]:
    """Read the database."""
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def count(url: str, state: str) -> object:
    """Count notifications of a state."""
    query = f"SELECT count(*) FROM diagnostics_notification WHERE state = '{state}'"  # noqa: S608
    return ask(url, query)[0][0]


def in_order(hook: Hook) -> bool:
    """Ask whether every incident was told to be over after it was told to have fired."""
    first: dict[int, str] = {}
    for body in hook.bodies():
        first.setdefault(body["data"]["incident"], body["type"])
    return set(first.values()) == {"incident.fired"}
