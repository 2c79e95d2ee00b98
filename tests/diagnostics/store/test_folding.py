"""Every event is counted exactly once, in every grain, whoever folds and whenever."""

import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections, transaction

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.failures.models import FailureGroup
from diagnostics.ingest.recording import record
from diagnostics.store import aggregation
from diagnostics.store.models import Event, Series, Version
from diagnostics.store.rollups import MEASURES, OUTCOMES, UNCHECKED
from diagnostics.store.sql import MEASURES_OF_EVENTS, fetch
from diagnostics.store.windows import WIDTHS, Grain, floor
from failsoft.events import CallErrorType, ParseErrorType, PostedEvent, UncheckedReason
from tests.diagnostics.builders import degraded, succeeded, wire_event
from tests.diagnostics.store.measures import count_by_hand

pytestmark = pytest.mark.django_db
GRAINS = ("minute", "hour", "day", "hour_by_version", "day_by_version", "total")
REASONS = ("next_step_parse_failed", "circuit_open", "provider_failed", "timeout")
Counted = Mapping[str, int]
RECOUNT = """
SELECT {}
FROM (
    SELECT
        event.*,
        kind IN ('succeeded', 'parse_invalid', 'provider_error') AS is_call,
        CASE kind WHEN 'parse_invalid' THEN parse_error_type END AS invalid_type,
        CASE kind WHEN 'provider_error' THEN call_error_type END AS call_type,
        payload.repairs <> '[]' AS is_repaired,
        payload.coerced <> '[]' AS is_coerced
    FROM diagnostics_event AS event
    LEFT JOIN diagnostics_event_payload AS payload
        USING (project_id, event_id, occurred_at)
) AS counted
"""


def chance_event(chance: random.Random, now: datetime, days: float) -> dict[str, Any]:
    """Make up any event of the last `days`."""
    common: dict[str, Any] = {
        "event_id": str(uuid4()),
        "occurred_at": (now - timedelta(days=chance.random() * days)).isoformat(),
        "provider": chance.choice(["a", "b", None]),
        "model": chance.choice(["m1", "m2", None]),
        "environment": chance.choice(["prod", None]),
        "prompt_version": chance.choice(["v1", "v2", None]),
        "release": chance.choice(["r1", "r2"]),
        "served_model": chance.choice(["m1", "m3", None]),
        "upstream": chance.choice(["azure", None]),
    }
    attempt = {
        "attempt": chance.choice([1, 1, 2, 3, 4, 5, 7]),
        "latency_ms": chance.choice([None, 0, 100, 101, 5_000, 2_000_000]),
        "input_tokens": chance.choice([None, 10, 900]),
        "output_tokens": chance.choice([None, 0, 512]),
    }
    lenient = {
        "repairs": chance.choice(
            [
                None,
                [{"kind": "trailing_comma"}],
                [{"kind": "prose", "lossless": False}],
                [{"kind": "comment", "lossless": False}],
            ]
        ),
        "coerced": chance.choice([None, [{"path": "/a", "kind": "case"}]]),
    }
    simplified = {"simplified": True} if chance.random() < 0.3 else {}
    called = {"call_error_type": chance.choice([*CallErrorType, "odd"])}
    made: list[Callable[[], dict[str, Any]]] = [
        lambda: succeeded(**common, **attempt, **lenient, attributes=simplified),
        lambda: succeeded(**{**common, "latency_ms": 700, "attempt": 1}),
        lambda: succeeded(**common, **attempt, unchecked=chance.choice([*UncheckedReason])),
        lambda: wire_event(
            **{**common, **attempt, **lenient},
            parse_error_type=chance.choice([*ParseErrorType, "strange"]),
        ),
        lambda: degraded(
            **common,
            reason=chance.choice(REASONS),
            status=chance.choice(["failed", "stubbed"]),
            attempts=chance.choice([0, 1, 2]),
        ),
        lambda: succeeded(
            **{**common, **attempt},
            name="graph.plan.provider_error",
            attributes=chance.choice([{}, called]),
        ),
        lambda: succeeded(
            **common, name="graph.plan.unknown_tool", tool=chance.choice(["serch", "fetchh_2"])
        ),
    ]
    return chance.choice(made)()


def chance_events(seed: int, count: int, days: float = 1.5) -> list[PostedEvent]:
    chance, now = random.Random(seed), clock.now()
    return [PostedEvent.model_validate(chance_event(chance, now, days)) for _ in range(count)]


def counted(grain: str) -> Counted:
    """Add up a grain with what is not folded yet."""
    kept = ", ".join(f"coalesce(sum({name}), 0)::bigint" for name in MEASURES)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {kept} FROM diagnostics_rollup_{grain}")  # noqa: S608 - our own names
        return dict(zip(MEASURES, cursor.fetchone(), strict=True))


def recount() -> Counted:
    """Count the events themselves, row by row, with the ingest's own measures."""
    with connection.cursor() as cursor:
        cursor.execute(RECOUNT.format(", ".join(MEASURES_OF_EVENTS.values())))
        row = cursor.fetchone()
    return {name: value or 0 for name, value in zip(MEASURES, row, strict=True)}


def record_in_batches(project: Project, events: Sequence[PostedEvent], size: int) -> None:
    for place in range(0, len(events), size):
        with transaction.atomic():
            record(project.pk, events[place : place + size])


def own_connection(done: Any) -> Any:
    """Run in a thread and close its connection."""
    try:
        return done()
    finally:
        connections.close_all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_every_grain_equals_a_full_recount(project: Project, seed: int) -> None:
    events = chance_events(seed, 300)
    record_in_batches(project, events, 1 + 40 * seed)
    expected = recount()
    assert expected["events"] == 300
    by_hand = count_by_hand(events)
    assert {name: expected[name] for name in by_hand} == by_hand
    assert counted("delta") == expected
    aggregation.fold()
    assert aggregation.waiting() == 0
    for grain in GRAINS:
        assert counted(grain) == expected, grain


def test_runs_are_the_sum_of_their_outcomes(project: Project) -> None:
    record(project.pk, chance_events(9, 400))
    total = counted("delta")
    unchecked = sum(total[name] for name in UNCHECKED)
    assert unchecked > 0
    assert sum(total[name] for name in OUTCOMES) + unchecked == total["runs"]
    good = total["ok_first"] + total["repaired"]
    assert total["degraded"] == total["runs"] - good - unchecked


def test_an_unchecked_answer_is_a_call_and_in_no_count_of_valid_ones(project: Project) -> None:
    told = {"unchecked": "no_schema", "latency_ms": 100, "output_tokens": 3}
    wire = [succeeded(**told), succeeded(**told, attempt=2, coerced=[{"path": "", "kind": "case"}])]
    record(project.pk, [PostedEvent.model_validate(item) for item in wire])
    assert {name: value for name, value in counted("delta").items() if value} == {
        "events": 2, "runs": 2, "attempts": 2, "succeeded": 2, "retries": 1, "coerced": 1,
        "unchecked_no_schema": 2, "latency_count": 2, "latency_00": 2, "latency_ms": 200,
        "output_tokens": 6, "retry_output_tokens": 3, "retry_ms": 100,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lenient", "is_altered"),
    [
        ({"repairs": [{"kind": "trailing_comma"}, {"kind": "prose", "lossless": False}]}, False),
        ({"repairs": [{"kind": "comment", "lossless": False}]}, True),
        ({"coerced": [{"path": "/category", "kind": "fallback"}]}, True),
    ],
)
def test_a_first_pass_is_altered_where_reading_it_changed_a_value(
    project: Project, lenient: dict[str, Any], is_altered: bool
) -> None:
    events = [succeeded(**lenient), succeeded(**lenient, attempt=2), wire_event(**lenient)]
    record(project.pk, [PostedEvent.model_validate(event) for event in events])
    total = counted("delta")
    assert (total["ok_first"], total["ok_altered"]) == (1, int(is_altered))
    assert total == recount()


def test_m_5_counted_by_hand(project: Project) -> None:
    now = clock.now().isoformat()
    wire = [
        succeeded(occurred_at=now, latency_ms=100, input_tokens=5, output_tokens=2),
        succeeded(occurred_at=now, attempt=2, latency_ms=101, input_tokens=7),
        wire_event(occurred_at=now, attempt=1, latency_ms=90_000, output_tokens=9),
        degraded(occurred_at=now, status="stubbed", reason="circuit_open"),
        degraded(occurred_at=now, attempts=2),
    ]
    record(project.pk, [PostedEvent.model_validate(item) for item in wire])
    aggregation.fold()
    hour = {name: value for name, value in counted("hour").items() if value}
    assert hour == {
        "events": 5, "runs": 4, "degraded": 2, "ok_first": 1, "repaired": 1,
        "failed": 1, "stubbed": 1, "attempts": 3, "invalid": 1, "not_json": 1,
        "succeeded": 2, "retries": 1, "parse_failed": 1, "retries_failed": 1,
        "tried_2": 1, "good_2": 1, "latency_count": 3, "invalid_latency_count": 1,
        "latency_00": 1, "latency_01": 1, "latency_15": 1, "input_tokens": 12,
        "output_tokens": 11, "retry_input_tokens": 7, "invalid_output_tokens": 9,
        "latency_ms": 90_201, "retry_ms": 101, "invalid_latency_ms": 90_000,
    }  # fmt: skip


def test_a_duplicate_counts_once(project: Project) -> None:
    events = chance_events(3, 20)
    record(project.pk, events)
    record(project.pk, [*events, *events])
    aggregation.fold()
    assert counted("hour")["events"] == 20


def test_a_batch_of_one_minute_and_series_is_one_delta_row(project: Project) -> None:
    at = clock.now().replace(second=5).isoformat()
    same = [PostedEvent.model_validate(succeeded(occurred_at=at)) for _ in range(50)]
    record(project.pk, same)
    assert aggregation.waiting() == 1


def test_s9_an_old_time_moves_no_minute_and_one_ahead_that_of_its_arrival(project: Project) -> None:
    now = clock.now()
    times = (timedelta(days=-31), timedelta(minutes=6), timedelta(minutes=4))
    wire = [succeeded(occurred_at=(now + away).isoformat()) for away in times]
    recorded = record(project.pk, [PostedEvent.model_validate(item) for item in wire])
    assert [item.time_mark for item in recorded] == ["late", "ahead", None]
    old, ahead, soon = Event.objects.order_by("occurred_at")
    assert (old.time_mark, ahead.time_mark, soon.time_mark) == ("late", None, None)
    assert (ahead.occurred_at, ahead.claimed_at) == (ahead.received_at, now + times[1])
    assert soon.claimed_at is None
    aggregation.fold()
    assert counted("minute")["events"] == 2
    assert counted("hour")["events"] == counted("day")["events"] == 3
    minutes = fetch("SELECT bucket FROM diagnostics_rollup_minute ORDER BY bucket")
    assert minutes[0] == (floor(ahead.received_at, WIDTHS[Grain.MINUTE]),)


def test_old_minutes_are_only_in_hours_and_days(project: Project) -> None:
    old = (clock.now() - timedelta(hours=49)).isoformat()
    record(project.pk, [PostedEvent.model_validate(succeeded(occurred_at=old))])
    aggregation.fold()
    assert counted("minute")["events"] == 0
    assert counted("hour")["events"] == 1


def test_an_invented_event_is_in_the_rollups_and_not_in_the_totals(project: Project) -> None:
    record(project.pk, chance_events(1, 30), is_demo=True)
    aggregation.fold()
    assert counted("hour")["events"] == 30
    assert counted("total")["events"] == 0


def test_series_and_versions_take_any_text(project: Project) -> None:
    long = "\U0001f600" * 200
    record(
        project.pk,
        [PostedEvent.model_validate(succeeded(provider=long, model=long, environment=long))],
    )
    aggregation.fold()
    assert Series.objects.get().provider == long
    assert Version.objects.count() == 1


def test_counts_beyond_an_integer_stop_nobody(project: Project) -> None:
    with connection.cursor() as cursor:
        for _ in range(3):
            cursor.execute(
                "INSERT INTO diagnostics_rollup_delta"
                " (project_id, minute, node, runs, ok_first, not_json)"
                " VALUES (%s, now(), 'plan', 2147483647, 2147483647, 2147483647)",
                [project.pk],
            )
            assert aggregation.fold() == 1
    assert counted("day")["not_json"] == 2_147_483_647


def test_eight_kinds_of_failure_by_six_models_are_eight_groups(project: Project) -> None:
    kinds: list[dict[str, Any]] = [
        {"parse_error_type": "not_json"},
        {"parse_error_type": "truncated"},
        {"parse_error_type": "empty_output"},
        {"parse_error_type": "refusal"},
        {"parse_error_type": "schema_invalid", "path": "/steps/{}/tool"},
        {"parse_error_type": "schema_invalid", "path": "/kind", "code": "enum"},
        {"parse_error_type": "schema_invalid", "path": "/steps/{}/args"},
        {"name": "graph.next_step.unknown_tool", "tool": "serch"},
    ]
    events = []
    for model in range(6):
        for number, kind in enumerate(kinds):
            fault = {
                "path": kind.get("path", "").format(model),
                "message": f"fault {number} as {model} says it",
                "code": kind.get("code", "missing"),
                "line": 3 + model,
                "column": model + 1,
            }
            shape = {k: v for k, v in kind.items() if k not in ("path", "code")}
            wire = wire_event(
                provider=f"p{model % 2}",
                model=f"m{model}",
                prompt_version=f"v{model % 3}",
                validation_errors=[fault],
                **shape,
            )
            events.append(PostedEvent.model_validate(wire))
    record(project.pk, events)
    aggregation.fold()
    groups = FailureGroup.objects.filter(project=project)
    assert groups.count() == 8
    assert {group.seen for group in groups} == {6}


@pytest.fixture
def flood(project: Project) -> list[list[PostedEvent]]:
    events = chance_events(11, 800)
    return [events[place : place + 20] for place in range(0, 800, 20)]


@pytest.mark.django_db(transaction=True)
def test_writers_and_five_folders_at_once_lose_and_double_nothing(
    project: Project, flood: list[list[PostedEvent]]
) -> None:
    def write(batch: list[PostedEvent]) -> None:
        own_connection(lambda: record(project.pk, batch))

    def fold_often(_: int) -> None:
        own_connection(lambda: [aggregation.fold() for _ in range(8)])

    with ThreadPoolExecutor(9) as pool:
        written = [pool.submit(write, batch) for batch in flood]
        folded = [pool.submit(fold_often, turn) for turn in range(5)]
        for done in [*written, *folded]:
            done.result()
    aggregation.fold()
    expected = recount()
    assert expected["events"] == 800
    for grain in GRAINS:
        assert counted(grain) == expected, grain
    seen = sum(FailureGroup.objects.values_list("seen", flat=True))
    with connection.cursor() as cursor:
        for grain in ("hour", "day"):
            cursor.execute(f"SELECT sum(seen) FROM diagnostics_group_{grain}")  # noqa: S608 - our own name
            assert cursor.fetchone()[0] == seen > 0


@pytest.mark.django_db(transaction=True)
def test_an_event_that_commits_late_is_folded_later(project: Project) -> None:
    late, early = chance_events(5, 2)
    # Of a run of its own: writers of one run wait for each other.
    early = early.model_copy(update={"correlation_id": "another"})
    with transaction.atomic():
        record(project.pk, [late])
        with ThreadPoolExecutor(1) as pool:
            pool.submit(
                own_connection, lambda: record(project.pk, [early]) and aggregation.fold()
            ).result()
    aggregation.fold()
    assert counted("hour")["events"] == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "part",
    [
        "INSERT INTO diagnostics_series",
        "INSERT INTO diagnostics_version",
        "INSERT INTO diagnostics_rollup_minute",
    ],
)
def test_a_folder_killed_between_its_statements_has_done_nothing(
    project: Project, part: str
) -> None:
    record(project.pk, chance_events(6, 50))
    expected = recount()

    def die_before() -> None:
        """End the folder's own server process when it comes to a statement."""

        def watch(execute: Any, sql: str, *rest: Any) -> Any:
            if part in sql:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            return execute(sql, *rest)

        with connection.execute_wrapper(watch):
            aggregation.fold()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(own_connection, die_before).result()
    assert counted("hour")["events"] == 0
    assert counted("delta") == expected
    aggregation.fold()
    assert counted("hour") == expected


@pytest.mark.parametrize(
    ("days", "hours", "keys", "count"),
    [
        ("rollup_day_by_version", "rollup_hour_by_version", "series_id, version_id", "events"),
        ("group_day", "group_hour", "group_id, series_id, version_id", "seen"),
    ],
)
def test_a_day_is_the_sum_of_its_hours(
    project: Project, days: str, hours: str, keys: str, count: str
) -> None:
    record_in_batches(project, chance_events(7, 200, days=40), 50)
    aggregation.fold()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT bucket, {keys}, {count} FROM diagnostics_{days}")  # noqa: S608 - our own names
        folded = sorted(cursor.fetchall())
        cursor.execute(
            f"SELECT date_trunc('day', bucket, 'UTC') AS day, {keys}, sum({count})"  # noqa: S608 - our own names
            f" FROM diagnostics_{hours} GROUP BY day, {keys}"
        )
        assert folded == sorted(cursor.fetchall())
    assert folded


def test_many_rows_of_one_project_delay_no_other(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Project.objects.create(slug="small", name="S")
    for _ in range(4):
        record(project.pk, chance_events(1, 1))
    record(small.pk, chance_events(2, 1))
    folded: list[int] = []
    fold_batch = aggregation.fold_batch

    def fold_and_note(table: str, project_id: int) -> int:
        if table == aggregation.DELTAS:
            folded.append(project_id)
        return fold_batch(table, project_id)

    monkeypatch.setattr(aggregation, "BATCH", 1)
    monkeypatch.setattr(aggregation, "fold_batch", fold_and_note)
    aggregation.fold()
    assert folded == [project.pk, small.pk, project.pk, project.pk, project.pk]
    assert aggregation.waiting() == 0


def test_rows_that_fail_delay_no_other_project(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Project.objects.create(slug="small", name="S")
    for one in (project, small):
        record(one.pk, [PostedEvent.model_validate(succeeded())])
    fold_batch = aggregation.fold_batch

    def fail_for_one(table: str, project_id: int) -> int:
        if project_id == project.pk:
            raise ZeroDivisionError
        return fold_batch(table, project_id)

    monkeypatch.setattr(aggregation, "fold_batch", fail_for_one)
    assert aggregation.fold() == 1
    assert aggregation.waiting() == 1
