"""Series count runs by how they ended; lists go on where they stopped."""

from datetime import timedelta

import pytest

from diagnostics.accounts.models import Project
from diagnostics.analysis.series import rate_series
from diagnostics.queries.series import counts_by_series
from diagnostics.rest.cursors import EVENT_ORDER, BadCursorError
from diagnostics.selection.query_language import Term
from diagnostics.store.models import events_of, payloads_of
from diagnostics.store.windows import align
from tests.console import post_events
from tests.diagnostics.builders import AT, degraded, succeeded, wire_event

pytestmark = pytest.mark.django_db
SINCE, UNTIL = AT - timedelta(hours=24), AT + timedelta(minutes=1)
WINDOW = align(SINCE, UNTIL, UNTIL)
BEFORE = timedelta(hours=1)


def test_a_series_counts_runs_by_how_they_ended(project: Project) -> None:
    post_events(
        project,
        *[succeeded(attempt=1) for _ in range(6)],
        *[wire_event(attempt=1) for _ in range(3)],
        succeeded(attempt=2, input_tokens=100, output_tokens=20, latency_ms=900),
        wire_event(attempt=2, input_tokens=50, latency_ms=100),
        wire_event(attempt=2),
        degraded(),
        degraded(),
    )
    [(key, counts)] = counts_by_series(project.pk, WINDOW).items()
    assert (key.provider, key.model, key.node) == ("fake", "fake-1", "next_step")
    assert (counts.runs, counts.degraded) == (9, 2)
    assert (counts.first_pass, counts.repaired) == (6, 1)
    assert (counts.retry_tokens, counts.retry_milliseconds) == (170, 1000)
    assert rate_series(counts).repair_success_rate == pytest.approx(1 / 3)


def test_null_is_a_value_of_a_series_and_of_a_filter(project: Project) -> None:
    post_events(project, succeeded(provider=None, model=None), succeeded())
    assert len(counts_by_series(project.pk, WINDOW)) == 2
    (key,) = counts_by_series(project.pk, WINDOW, [Term("provider", None)])
    assert key.provider is None
    (key,) = counts_by_series(project.pk, WINDOW, [Term("provider", "fake")])
    assert key.provider == "fake"
    assert counts_by_series(project.pk, WINDOW, [Term("node", "plan")]) == {}


def test_a_series_that_ended_no_run_in_the_window_is_not_counted(project: Project) -> None:
    post_events(project, *[succeeded(model="called") for _ in range(3)])
    post_events(project, succeeded(model="quiet", occurred_at=(SINCE - BEFORE).isoformat()))
    assert [key.model for key in counts_by_series(project.pk, WINDOW)] == ["called"]


def test_another_project_is_never_counted(project: Project) -> None:
    other = Project.objects.create(slug="o", name="O")
    post_events(other, succeeded())
    assert counts_by_series(project.pk, WINDOW) == {}
    assert list(events_of(project.pk)) == []


def test_pages_go_on_where_the_last_one_stopped(project: Project) -> None:
    times = [AT - timedelta(seconds=number // 3) for number in range(20)]
    post_events(project, *[succeeded(occurred_at=at.isoformat()) for at in times])
    seen, cursor = [], None
    for _ in range(3):
        page, cursor = EVENT_ORDER.page(events_of(project.pk), 8, cursor)
        seen += [event.event_id for event in page]
    assert cursor is None
    assert len(seen) == len(set(seen)) == 20


@pytest.mark.parametrize("cursor", ["x", "%%%", "MjAyNg", "é" * 9, "MjAyNi0xMS0yMXxh"])
def test_a_made_up_cursor_is_refused(project: Project, cursor: str) -> None:
    with pytest.raises(BadCursorError):
        EVENT_ORDER.page(events_of(project.pk), 8, cursor)


def test_details_are_found_for_a_page_of_events(project: Project) -> None:
    post_events(project, wire_event(), succeeded())
    events = list(events_of(project.pk))
    (payload,) = payloads_of(events).values()
    assert payload.raw_output_preview == "not json"
    assert payloads_of([]) == {}
