"""Retries that are not numbered, and values that no two calls share: the page of data says so."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.ingest.recording import record
from diagnostics.ingest.views import repeated_attempts, unique_values
from failsoft.events import PostedEvent
from tests.console import make_member
from tests.diagnostics.builders import degraded, succeeded, wire_event

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
BAD, GOOD, END = wire_event, succeeded, degraded


@pytest.mark.parametrize(
    ("calls", "repeated"),
    [
        pytest.param([(BAD, {}), (GOOD, {})], 1, id="the retry is 1 again"),
        pytest.param([(BAD, {}), (GOOD, {"attempt": 2})], 0, id="numbered"),
        pytest.param([(BAD, {}), (GOOD, {"cycle": 2})], 0, id="another answer"),
        pytest.param([(BAD, {}), (GOOD, {"correlation_id": "b"})], 0, id="another run"),
        pytest.param([(BAD, {}), (END, {})], 0, id="given up"),
        pytest.param([(GOOD, {}), (GOOD, {}), (BAD, {})], 0, id="nothing was repeated"),
        pytest.param([(BAD, {})] * 3, 2, id="never good"),
    ],
)
def test_calls_are_counted_that_repeat_the_number_of_a_bad_answer(
    project: Project, client: Any, calls: Sequence[Any], repeated: int
) -> None:
    begin = clock.now() - timedelta(minutes=5)
    events = [
        make(**{"occurred_at": (begin + place * SECOND).isoformat(), **changes})
        for place, (make, changes) in enumerate(calls)
    ]
    record(project.pk, [PostedEvent.model_validate(event) for event in events])
    assert repeated_attempts(project.pk, clock.now()) == repeated
    client.force_login(make_member(project))
    page = client.get("/ingest/").content.decode()
    assert ("Repeated attempt numbers" in page) is (repeated > 0)


@pytest.mark.parametrize(
    ("sharing", "told"),
    [
        pytest.param(1, [("prompt_version", 60, 60)], id="a hash of each text"),
        pytest.param(3, [], id="shared by three calls"),
        pytest.param(60, [], id="one version"),
    ],
)
def test_fields_are_named_of_which_hardly_two_calls_share_a_value(
    project: Project, client: Any, sharing: int, told: list[tuple[str, int, int]]
) -> None:
    begin = clock.now() - timedelta(minutes=5)
    calls = [
        succeeded(
            occurred_at=(begin + place * SECOND).isoformat(),
            correlation_id=f"run-{place}",
            prompt_version=f"v{place // sharing}",
        )
        for place in range(60)
    ]
    record(project.pk, [PostedEvent.model_validate(call) for call in calls])
    assert unique_values(project.pk, clock.now()) == told
    client.force_login(make_member(project))
    page = client.get("/ingest/").content.decode()
    assert ("Nearly unique values" in page) is bool(told)
