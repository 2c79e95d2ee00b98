"""The event schema is the documented one, to the field."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from failsoft.events import (
    EventKind,
    ParseErrorType,
    PostedEvent,
    describe_errors,
    event_name,
    split_name,
)
from tests.diagnostics.builders import degraded, make_event, succeeded, wire_event


def faults(event: dict[str, Any]) -> list[dict[str, str]]:
    with pytest.raises(ValidationError) as caught:
        PostedEvent.model_validate(event)
    return describe_errors(caught.value)


def paths(event: dict[str, Any]) -> set[str]:
    return {fault["path"] for fault in faults(event)}


def test_s0_30_s0_39_names_are_verbatim() -> None:
    invalid = event_name("next_step", EventKind.PARSE_INVALID)
    terminal = event_name("next_step", EventKind.DEGRADED)
    assert invalid == "graph.next_step.parse_invalid"
    assert terminal == "graph.next_step.degraded"
    assert split_name(invalid) == ("next_step", EventKind.PARSE_INVALID)


@pytest.mark.parametrize(
    "name", ["graph.x", "graph..degraded", "x.y.degraded", "graph.X.degraded", "graph.x.y"]
)
def test_other_names_are_no_event_names(name: str) -> None:
    with pytest.raises(ValueError, match="graph"):
        split_name(name)
    assert paths(wire_event(name=name)) == {"/name"}


REQUIRED = ["event_id", "name", "occurred_at", "correlation_id", "cycle"]


@pytest.mark.parametrize("field", REQUIRED)
def test_s0_31_s0_32_what_every_event_needs_is_named(field: str) -> None:
    assert paths(wire_event(**{field: None})) == {f"/{field}"}


# event, the field that its kind needs
OF_THEIR_KIND = [
    (wire_event(attempt=None), "attempt"),
    (wire_event(parse_error_type=None), "parse_error_type"),
    (succeeded(attempt=None), "attempt"),
    (succeeded(name="graph.plan.provider_error", attempt=None), "attempt"),
    (succeeded(name="graph.plan.unknown_tool"), "tool"),
    (degraded(attempts=None), "attempts"),
    (degraded(reason=None), "reason"),
    (degraded(status=None), "status"),
]


@pytest.mark.parametrize(("event", "field"), OF_THEIR_KIND)
def test_s0_33_s0_41_a_kind_needs_its_fields(event: dict[str, Any], field: str) -> None:
    (fault,) = faults(event)
    assert (fault["path"], fault["code"]) == (f"/{field}", "missing")


@pytest.mark.parametrize("field", ["provider", "model"])
def test_s0_34_s0_35_null_is_a_value_and_empty_is_none(field: str) -> None:
    for value in (None, "x"):
        event = PostedEvent.model_validate({**wire_event(), field: value})
        assert getattr(event, field) == value
    assert paths(wire_event(**{field: ""})) == {f"/{field}"}


def test_s0_36_error_types_are_a_closed_list() -> None:
    for kind in ParseErrorType:
        assert make_event(parse_error_type=kind.value).parse_error_type is kind
    other = make_event(parse_error_type="yaml_found")
    assert other.parse_error_type is ParseErrorType.OTHER
    assert other.original_error_type == "yaml_found"
    assert paths(wire_event(parse_error_type="")) == {"/parse_error_type"}


def test_s0_37_errors_are_a_list_of_concrete_items() -> None:
    event = make_event(validation_errors=["no tool", {"path": "/a", "message": "m"}])
    assert [item.message for item in event.validation_errors] == ["no tool", "m"]
    assert paths(wire_event(validation_errors="generic")) == {"/validation_errors"}
    many = make_event(validation_errors=["x"] * 500)
    assert len(many.validation_errors) == 100


def test_s0_42_s0_43_reason_and_status_are_verbatim() -> None:
    event = PostedEvent.model_validate(degraded())
    assert (event.reason, event.status) == ("next_step_parse_failed", "failed")
    assert paths(degraded(reason="plan_parse_failed")) == {"/reason"}
    assert paths(degraded(status="paused")) == {"/status"}


def test_an_unknown_key_is_refused_by_name_and_its_value_is_not_told() -> None:
    (fault,) = faults(wire_event(**{"a/b": "value-of-it"}))
    assert (fault["path"], fault["code"]) == ("/a~1b", "extra_forbidden")
    assert "value-of-it" not in str(fault)


def test_the_node_is_the_one_of_the_name() -> None:
    assert make_event().node == "next_step"
    assert make_event(node="next_step").node == "next_step"
    assert paths(wire_event(node="plan")) == {"/node"}


def test_times_are_told_in_utc() -> None:
    event = make_event(occurred_at="2026-11-21T15:32:07.120+01:00")
    assert event.occurred_at == datetime(2026, 11, 21, 14, 32, 7, 120_000, tzinfo=UTC)
    assert event.model_dump(mode="json")["occurred_at"].endswith("Z")


@pytest.mark.parametrize("offset", ["+01", "+0100", "+01:00"])
def test_an_offset_may_be_written_in_hours_as_postgresql_does(offset: str) -> None:
    event = make_event(occurred_at=f"2026-11-21 15:32:07.12{offset}")
    assert event.occurred_at == datetime(2026, 11, 21, 14, 32, 7, 120_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "time",
    [1_700_000_000, "1700000001", "2026-11-21", "2026-11-21T14:32", "x", "0001-01-01T00:00:00Z"],
)
def test_a_time_that_is_a_guess_is_refused(time: object) -> None:
    assert paths(wire_event(occurred_at=time)) == {"/occurred_at"}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"cycle": 0}, "/cycle"),
        ({"attempt": True}, "/attempt"),
        ({"attempt": 1.5}, "/attempt"),
        ({"latency_ms": -1}, "/latency_ms"),
        ({"temperature": -1}, "/temperature"),
        ({"output_mode": "yaml"}, "/output_mode"),
        ({"correlation_id": "x" * 201}, "/correlation_id"),
        ({"attributes": {str(n): 1 for n in range(33)}}, "/attributes"),
        ({"repairs": [{"kind": "x"}] * 101}, "/repairs"),
        ({"coerced": [{"kind": "x"}]}, "/coerced/0/path"),
        ({"attributes": {"a": [1]}}, "/attributes/a"),
        ({"attributes": {"a": {}, "": 1}}, "/attributes/"),
    ],
)
def test_a_value_beyond_its_bounds_is_located(change: dict[str, object], path: str) -> None:
    assert path in paths(wire_event(**change))
    assert len(faults(wire_event(**change))) <= 2


def test_optional_lists_may_be_null() -> None:
    names = ("validation_errors", "repairs", "coerced", "attributes")
    event = PostedEvent.model_validate({**wire_event(), **dict.fromkeys(names)})
    assert [len(getattr(event, name)) for name in names] == [0, 0, 0, 0]


def test_measured_fractions_of_a_millisecond_are_rounded() -> None:
    assert make_event(latency_ms=1840.6).latency_ms == 1841


def test_all_that_a_kind_needs_is_named_at_once() -> None:
    (fault,) = faults(degraded(attempts=None, reason=None, status=None))
    assert fault["message"] == "degraded events need attempts, reason, status"


def test_a_fault_is_worded_for_who_sent_the_event() -> None:
    (fault,) = faults(wire_event(occurred_at="2026-11-21T14:32:00"))
    assert fault["message"] == "an RFC 3339 time with offset is required"
