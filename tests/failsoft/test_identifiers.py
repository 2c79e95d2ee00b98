"""Identifiers carry their time; the same attempt always gets the same one (X-16)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from failsoft.identifiers import event_id, first_id, time_of, uuid7

AT = datetime(2026, 11, 21, 14, 32, 7, 120_000, tzinfo=UTC)
SAME: dict[str, Any] = {
    "occurred_at": AT,
    "project_id": 1,
    "correlation_id": "run-1",
    "node": "plan",
    "cycle": 1,
    "attempt": 2,
    "name": "graph.plan.parse_invalid",
}


def test_a_uuid7_is_one_and_tells_its_time() -> None:
    identifier = uuid7(AT, b"\xff" * 10)
    assert (identifier.version, identifier.variant) == (7, "specified in RFC 4122")
    assert time_of(identifier) == AT


def test_later_identifiers_sort_after_earlier_ones() -> None:
    later = uuid7(AT + timedelta(milliseconds=1), b"\x00" * 10)
    assert uuid7(AT, b"\xff" * 10) < later


@pytest.mark.parametrize(
    ("at", "chance"),
    [
        (AT.replace(tzinfo=None), b"x" * 10),
        (AT, b"x" * 9),
        (datetime(1969, 12, 31, tzinfo=UTC), b"x" * 10),
    ],
)
def test_an_identifier_without_time_or_chance_is_refused(at: datetime, chance: bytes) -> None:
    with pytest.raises(ValueError, match="identifier"):
        uuid7(at, chance)


def test_other_versions_carry_no_time() -> None:
    with pytest.raises(ValueError, match="version 7"):
        time_of(uuid7(AT, b"x" * 10).__class__("1b4e28ba-2fa1-11d2-883f-0016d3cca427"))


def test_x16_the_same_attempt_gets_the_same_id() -> None:
    assert event_id(**SAME) == event_id(**SAME)
    assert time_of(event_id(**SAME)) == AT


@pytest.mark.parametrize(
    "change",
    [
        {"project_id": 2},
        {"correlation_id": "run-2"},
        {"node": "next_step"},
        {"cycle": 2},
        {"attempt": None},
        {"attempt": 3},
        {"name": "graph.plan.succeeded"},
        {"occurred_at": AT + timedelta(milliseconds=1)},
        {"correlation_id": "run-1p", "node": "lan"},
    ],
)
def test_x16_anything_else_gets_another_id(change: dict[str, object]) -> None:
    assert event_id(**{**SAME, **change}) != event_id(**SAME)


def test_the_first_id_of_a_moment_is_below_all_of_it_and_above_all_before() -> None:
    first = first_id(AT)
    assert first <= uuid7(AT, bytes(10))
    assert first < uuid7(AT, b"\xff" * 10)
    assert first > uuid7(AT - timedelta(milliseconds=1), b"\xff" * 10)
