"""Days of a half-hour zone: exact while minutes are kept, else without overlap, and said so."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from tests.console import make_member, post_and_fold
from tests.diagnostics.builders import succeeded, wire_event
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db
Asked = Mapping[str, str]
ANY: Asked = {}
KOLKATA = ZoneInfo("Asia/Kolkata")
NOW = datetime(2026, 11, 19, 1, 45, 20, tzinfo=KOLKATA).astimezone(UTC)
# Midnights in Kolkata, at half past six in the evening of UTC; the last was a moment ago.
MIDNIGHTS = [datetime(2026, 11, day, tzinfo=KOLKATA).astimezone(UTC) for day in range(12, 20)]
FIRST = MIDNIGHTS[0] - timedelta(hours=3)
TIMES = [FIRST + n * timedelta(minutes=20) for n in range((NOW - FIRST) // timedelta(minutes=20))]


@pytest.fixture
def project() -> Project:
    shift_clock(NOW)
    project = Project.objects.create(slug="p", name="P")
    events = [
        make(occurred_at=at.isoformat(), source="planner")
        for at in TIMES
        for make in (succeeded, wire_event)
    ]
    post_and_fold(project, *events)
    return project


@pytest.fixture
def client(project: Project) -> Client:
    key = issue_key(project, "k", [Scope.READ]).text
    return Client(headers={"Authorization": f"Bearer {key}"})


def answer(client: Client, path: str, ends: Sequence[datetime], asked: Asked = ANY) -> Any:
    times = {name: end.isoformat() for name, end in zip(("from", "to"), ends, strict=True)}
    found = client.get(f"/api/v1/{path}", {**times, **asked})
    assert found.status_code == 200, found.content
    return found.json()


def counted(told: Any) -> int:
    (item,) = told["items"]
    return int(item.get("runs" if "retry_tokens" in item else "seen"))


def between(since: datetime, until: datetime) -> int:
    return sum(since <= at < until for at in TIMES)


def covers(told: Any) -> tuple[datetime, datetime]:
    since, until = (datetime.fromisoformat(told["covers"][name]) for name in ("since", "until"))
    return since, until


@pytest.mark.parametrize(
    "asked", [("series", {}), ("series", {"source": "planner"}), ("failures", {})]
)
def test_days_share_nothing_and_add_up_to_their_week(
    client: Client, asked: tuple[str, dict[str, str]]
) -> None:
    path, filters = asked
    week = answer(client, path, (MIDNIGHTS[0], MIDNIGHTS[-1]), filters)
    days = [answer(client, path, day, filters) for day in pairwise(MIDNIGHTS)]
    assert sum(map(counted, days)) == counted(week)
    edges = [covers(day) for day in days]
    assert all(one[1] == other[0] for one, other in pairwise(edges))
    assert (edges[0][0], edges[-1][1]) == covers(week)
    # What is said to be counted is what was counted.
    for told in (week, *days):
        assert counted(told) == between(*covers(told))


def test_a_day_whose_minutes_are_kept_is_exact(client: Client) -> None:
    told = answer(client, "series", MIDNIGHTS[-2:])
    assert covers(told) == (MIDNIGHTS[-2], MIDNIGHTS[-1])
    assert counted(told) == between(*MIDNIGHTS[-2:]) == 72


def test_each_edge_is_as_exact_as_it_can_be(client: Client) -> None:
    half = timedelta(minutes=30)
    assert covers(answer(client, "series", (MIDNIGHTS[0], MIDNIGHTS[-1]))) == (
        MIDNIGHTS[0] - half,
        MIDNIGHTS[-1],
    )
    assert covers(answer(client, "failures", MIDNIGHTS[-2:])) == (
        MIDNIGHTS[-2] - half,
        MIDNIGHTS[-1] - half,
    )


def test_a_range_that_ends_now_covers_all_there_is(client: Client) -> None:
    told = client.get("/api/v1/series").json()
    since, until = covers(told)
    assert since == (NOW - timedelta(days=1)).replace(second=0)
    assert NOW <= until < NOW + timedelta(seconds=50)
    assert counted(told) == between(since, NOW)


def test_failures_read_event_by_event_are_exact(client: Client) -> None:
    told = answer(client, "failures", MIDNIGHTS[2:4], {"attempt": "1"})
    assert covers(told) == (MIDNIGHTS[2], MIDNIGHTS[3])
    assert counted(told) == between(*MIDNIGHTS[2:4])
    one = answer(client, f"failures/{told['items'][0]['id']}", MIDNIGHTS[2:4])
    assert one["seen"] == between(*covers(one))


def test_a_verdict_covers_a_day_at_least(client: Client) -> None:
    told = client.get("/api/v1/verdict", {"range": "1h"}).json()
    assert covers(told)[0] == (NOW - timedelta(days=1)).replace(minute=10, second=0)
    old = answer(client, "verdict", MIDNIGHTS[:2])
    half = timedelta(minutes=30)
    assert covers(old) == (MIDNIGHTS[0] - half, MIDNIGHTS[1] - half)


@pytest.mark.parametrize("page", ["/", "/models/", "/models/fake/fake-1/"])
def test_a_page_says_what_it_counts_where_that_is_not_what_was_asked(
    project: Project, page: str
) -> None:
    reader = Client()
    reader.force_login(make_member(project))

    def shown(since: datetime, until: datetime) -> str:
        times = {"from": since.isoformat(), "to": until.isoformat(), "tz": "Asia/Kolkata"}
        return str(reader.get(page, times).content, "utf-8")

    words = "Counting 2026-11-11 23:30 to 2026-11-12 23:30: finer counts are not stored."
    assert words in shown(*MIDNIGHTS[:2])
    assert "finer counts" not in shown(*MIDNIGHTS[-2:])
    assert "finer counts" not in str(reader.get(page, {"range": "7d"}).content, "utf-8")
