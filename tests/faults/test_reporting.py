"""A week of reports with three beats, clocks five minutes apart, and kills: each exactly once.

REPORT_DAYS=60 makes it longer. The clock of the database is shifted; mails go to a real
server. A sender that is killed between the server's yes and its own note sends again under
the same Message-ID: that is what the id is for.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from datetime import time as wall_time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.reports.models import Report, ReportDelivery, Subscription
from diagnostics.reports.subscriptions import schedule_of
from tests.diagnostics.reports.conftest import MailServer, free_port
from tests.security.web import ROOT, database_url

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]

DAYS = int(os.environ.get("REPORT_DAYS", "7"))
STEP = timedelta(hours=2)
# A kill in so many steps: twice in a day of the simulated time, once in seconds of ours.
KILL_EVERY = 6
SKEWS = {"early": 300, "exact": 0, "late": -300}
STEP_SECONDS = 60.0
READERS: list[dict[str, Any]] = [
    {"cadence": "daily", "zone": "Europe/Berlin"},
    {"cadence": "daily", "zone": "UTC", "at": wall_time(0, 0)},
    {"cadence": "daily", "zone": "Pacific/Apia", "at": wall_time(23, 59)},
    {"cadence": "weekdays", "zone": "America/New_York", "at": wall_time(2, 30)},
    {"cadence": "weekly", "weekday": 6, "zone": "Australia/Lord_Howe"},
    {"cadence": "monthly", "month_day": 31, "zone": "Asia/Kathmandu"},
]


class Beats:
    """Three processes that look for what is due; any of them may be killed."""

    def __init__(self, folder: Path, mail_port: int) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "DATABASE_URL": database_url(),
            "FAILSOFT_EMAIL_URL": f"smtp://127.0.0.1:{mail_port}",
            "BEAT_FOLDER": str(folder),
            "PYTHONPATH": str(ROOT),
        }
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        words = [sys.executable, "-m", "tests.faults.report_beat", name]
        self.running[name] = subprocess.Popen([*words, str(SKEWS[name])], env=self.env, cwd=ROOT)

    def kill(self, name: str) -> None:
        self.running[name].send_signal(signal.SIGKILL)
        self.running[name].wait()

    def end(self) -> None:
        for name in self.running:
            with suppress(ProcessLookupError):
                self.kill(name)

    def tell(self, shift: float) -> None:
        """Name a time."""
        written = self.folder / "now.new"
        written.write_text(str(shift))
        written.replace(self.folder / "now")

    def await_one(self, shift: float) -> None:
        """Wait until one of the beats has worked through the time."""
        deadline = time.monotonic() + STEP_SECONDS
        while not any(self._seen(name) == str(shift) for name in SKEWS):
            assert time.monotonic() < deadline, "no beat looks at the time"
            for name, process in self.running.items():
                if process.poll() is not None:
                    self.start(name)
            time.sleep(0.005)

    def _seen(self, name: str) -> str:
        with suppress(OSError):
            return (self.folder / name).read_text()
        return ""


@pytest.fixture
def mails() -> Iterator[MailServer]:
    taken = MailServer(free_port())
    controller = Controller(taken, hostname="127.0.0.1", port=taken.port)
    controller.start()
    yield taken
    controller.stop()


@pytest.fixture
def beats(tmp_path: Path, mails: MailServer) -> Iterator[Beats]:
    made = Beats(tmp_path, mails.port)
    yield made
    made.end()


def subscribe_all(begin: datetime) -> None:
    """Subscribe a reader to each cadence, due from the begin of the week on."""
    project = Project.objects.create(slug="planner", name="Planner")
    for place, told in enumerate(READERS):
        made = Subscription(
            project=project,
            address=f"reader-{place}@example.org",
            token="t" * 22,
            **{"at": wall_time(8), **told},
        )
        made.next_at = schedule_of(made).after(begin).at
        made.save()


def wanted(begin: datetime, end: datetime) -> set[tuple[str, datetime]]:
    """Whose reports of which periods there must be."""
    return {
        (one.address, due.period.since)
        for one in Subscription.objects.all()
        for due in schedule_of(one).between(begin + timedelta(seconds=1), end)
    }


def test_c10_three_beats_that_are_killed_send_every_report_once(
    beats: Beats, mails: MailServer
) -> None:
    now = clock.now()
    # The week in which clocks go back in Berlin lies in it, whenever this runs.
    begin = datetime(now.year + 1, 10, 22, tzinfo=UTC)
    end = begin + timedelta(days=DAYS)
    subscribe_all(begin)
    expected = wanted(begin, end)
    shift = (begin - now).total_seconds()
    (beats.folder / "now").write_text(str(shift))
    for name in SKEWS:
        beats.start(name)
    random, kills = Random("beats"), 0
    for step in range(int((end - begin) / STEP) + 2):
        told = shift + step * STEP.total_seconds()
        beats.tell(told)
        if step % KILL_EVERY == KILL_EVERY - 1:
            # In the middle of its work, wherever that is.
            time.sleep(random.random() * 0.1)
            victim = random.choice(list(SKEWS))
            beats.kill(victim)
            beats.start(victim)
            kills += 1
        beats.await_one(told)
    beats.end()
    rows = ReportDelivery.objects.select_related("subscription", "report")
    made = [(row.subscription.address, row.period_start) for row in rows if row.period_end <= end]
    assert kills >= DAYS
    assert sorted(made) == sorted(set(made))
    assert expected <= set(made)
    assert {row.state for row in rows} == {ReportDelivery.State.SENT}
    assert not [row for row in rows if row.skipped]
    assert Report.objects.count() == len(rows)
    sent = {
        (recipients[0], mail["Message-ID"])
        for recipients, mail in zip(mails.recipients, mails.mails, strict=True)
    }
    assert sent == {(row.subscription.address, row.message_id) for row in rows}
