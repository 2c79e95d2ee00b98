"""What a check from outside needs of the product, under names that stay.

with door.database(now) as url:          # a disposable server; its clock shows `now`
    project = door.Project.create("p")
    project.post("events", items)        # by REST, as an agent does
    door.aggregate()
    project.get("verdict", range="24h")
door.judge_answer({"text": "{}", "answer_schema": {...}})  # no database
feed = door.SeriesFeed(48)
feed.minute(0, at, calls, failed, first_calls, first_failed)
feed.alarms[0]                           # [Alarm(fired, onset, cleared)]
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Self

from django.conf import settings
from django.db import connection
from django.test import Client

from bench.database import running_database
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project as ProjectRow
from diagnostics.accounts.projects import issue_key
from diagnostics.analysis.detectors.change import MINUTE
from diagnostics.analysis.detectors.replay import ProjectDetectors
from diagnostics.ingest.posted_answers import judge_answer
from diagnostics.store.aggregation import UNTIL_DONE, fold
from diagnostics.store.partitions import ensure_partitions

__all__ = ["Alarm", "Project", "SeriesFeed", "aggregate", "database", "judge_answer", "set_clock"]
Json = dict[str, Any]
QUOTAS = (
    "FAILSOFT_QUOTA_EVENTS_PER_SECOND",
    "FAILSOFT_QUOTA_EVENTS_PER_DAY",
    "FAILSOFT_QUOTA_EVENTS_PER_MONTH",
)


@contextmanager
def database(now: datetime | None = None, past: timedelta = timedelta(days=15)) -> Iterator[str]:
    """Run a disposable server without quotas; give its URL.

    Its clock shows `now` and goes on; events of the `past` before it can be stored.
    """
    settings.ALLOWED_HOSTS = ["testserver"]
    for quota in QUOTAS:
        setattr(settings, quota, 0)
    with running_database() as url:
        if now is not None:
            set_clock(now, past)
        yield url


def set_clock(now: datetime, past: timedelta = timedelta(days=15)) -> None:
    """Let the clock of the database show `now`, with room for events of the `past`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('failsoft.clock_shift', (%s - now())::text, false)", [now]
        )
    ensure_partitions((now - past).date(), now.date())


def aggregate() -> None:
    """Add what was posted to the counts that pages, verdicts and alerts read."""
    fold(UNTIL_DONE)


@dataclass(frozen=True, slots=True)
class Project:
    """A project, with a key for everything."""

    row: ProjectRow
    key: str

    @classmethod
    def create(cls, slug: str) -> Self:
        row = ProjectRow.objects.create(slug=slug, name=slug)
        return cls(row, issue_key(row, "door", list(Scope)).text)

    def post(self, where: str, body: object) -> Json:
        """Post to `/api/v1/<where>`; RuntimeError unless everything was accepted."""
        answer = Client().post(
            f"/api/v1/{where}", json.dumps(body), "application/json", headers=self._headers
        )
        told: Json = json.loads(answer.content)
        if answer.status_code not in {200, 201} or told.get("rejected"):
            raise RuntimeError(f"{where}: {answer.status_code} {answer.content[:500]!r}")
        return told

    def get(self, where: str, **query: Any) -> Json:
        """Return the answer of `GET /api/v1/<where>`; RuntimeError unless it is 200."""
        answer = Client().get(f"/api/v1/{where}", query, headers=self._headers)
        if answer.status_code != 200:
            raise RuntimeError(f"{where}: {answer.status_code} {answer.content[:500]!r}")
        told: Json = json.loads(answer.content)
        return told

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


class Alarm(NamedTuple):
    """An alarm of a series: when it fired, since when, and when it cleared; seconds.

    `low` and `high` are the 95 % interval of the onset.
    """

    fired: float
    onset: float
    cleared: float | None
    low: float
    high: float


class SeriesFeed:
    """The built-in detector over the series of a project, minute by minute."""

    def __init__(self, series: int = 1) -> None:
        """Begin without a past; the series share the project's budget of false alarms."""
        self._detectors = ProjectDetectors(series)
        self.alarms: list[list[Alarm]] = [[] for _ in range(series)]

    def minute(
        self,
        series: int,
        at: float,
        calls: int,
        failed: int,
        first_calls: int | None = None,
        first_failed: int | None = None,
    ) -> Alarm | None:
        """Take what a minute counted that ends `at`; return an alarm that fires or clears.

        `first_calls` and `first_failed` count the first attempts of runs, which the detector
        judges where they are told. The minutes of all series come in the order of time.
        """
        calls = calls if first_calls is None else first_calls
        failed = failed if first_failed is None else first_failed
        fire = self._detectors.feed(series, at - MINUTE, calls, failed)
        if fire is None:
            return None
        cleared = None if fire.cleared is None else fire.cleared + MINUTE
        onset, low, high = fire.onset
        alarm = Alarm(fire.at + MINUTE, onset, cleared, low, high)
        if alarm.cleared is not None:
            self.alarms[series].pop()
        self.alarms[series].append(alarm)
        return alarm
