"""Agents post batches; every item is answered, every fault is located."""

import base64
import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.rejects import rejects_of
from diagnostics.rest.batches import MAX_COMPRESSED_BYTES
from diagnostics.store.models import Event, EventPayload
from tests.diagnostics.builders import degraded, succeeded, wire_event

pytestmark = pytest.mark.django_db
URL = "/api/v1/events"
Post = Callable[..., Any]


@pytest.fixture
def key(project: Project) -> str:
    return issue_key(project, "tests", [Scope.INGEST, Scope.READ]).text


@pytest.fixture
def post(key: str) -> Post:
    def send(
        body: object,
        url: str = URL,
        content_type: str = "application/json",
        coding: str = "identity",
    ) -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {key}", "Content-Encoding": coding}
        return Client().post(url, raw, content_type=content_type, headers=headers)

    return send


def fresh(**changes: object) -> dict[str, Any]:
    """Give an event that happens now."""
    return wire_event(occurred_at=datetime.now(UTC).isoformat(), **changes)


def get(key: str, **asked: str) -> dict[str, Any]:
    answer = Client().get(URL, asked, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    return body


def test_m_8_a_batch_is_stored_once_and_answered_per_item(post: Post) -> None:
    good, again = wire_event(), succeeded()
    assert post([again]).status_code == 200
    bad = wire_event(attempt=0, event_id="bad-id")
    answer = post([good, again, bad, 7])
    assert answer.status_code == 207
    body = answer.json()
    assert (body["accepted"], body["duplicates"], body["rejected"]) == (1, 1, 2)
    assert [r["index"] for r in body["results"]] == [1, 2, 3]
    assert [r["status"] for r in body["results"]] == ["duplicate", "invalid", "invalid"]
    assert body["results"][1]["event_id"] == "bad-id"
    paths = {fault["path"] for fault in body["results"][1]["errors"]}
    assert paths == {"/attempt", "/event_id"}
    assert Event.objects.count() == 2


def test_a_conflict_is_a_rejection(post: Post) -> None:
    event = wire_event()
    post([event])
    answer = post([{**event, "attempt": 2}])
    assert answer.status_code == 207
    (result,) = answer.json()["results"]
    assert (result["status"], result["errors"][0]["code"]) == ("conflict", "conflict")


def test_verbose_lists_created_items_too(post: Post) -> None:
    assert post([wire_event()]).json()["results"] == []
    (result,) = post([wire_event()], f"{URL}?verbose=1").json()["results"]
    assert result["status"] == "created"


def test_an_unknown_key_becomes_an_attribute_and_the_answer_says_so(post: Post) -> None:
    told = post([fresh(temprature=1), fresh(temprature=2), fresh(pod="a-1")]).json()
    assert (told["accepted"], told["rejected"]) == (3, 0)
    misspelt, unknown = told["warnings"]
    assert (misspelt["path"], misspelt["code"]) == ("/temprature", "unknown_field")
    assert misspelt["message"].endswith("taken as an attribute; did you mean temperature?")
    assert (unknown["path"], "did you mean" in unknown["message"]) == ("/pod", False)
    kept = [payload.attributes for payload in EventPayload.objects.all()]
    assert sorted(kept, key=str) == [{"pod": "a-1"}, {"temprature": 1}, {"temprature": 2}]


def test_a_misspelt_name_of_a_field_that_is_needed_is_named_beside_the_refusal(post: Post) -> None:
    told = post([wire_event(attempt=None, atempt=1)]).json()
    assert told["results"][0]["errors"][0]["path"] == "/attempt"
    assert "did you mean attempt?" in told["warnings"][0]["message"]


def test_one_object_is_a_batch_of_one(post: Post) -> None:
    assert post(wire_event()).json()["accepted"] == 1


def test_an_item_without_an_id_is_counted_once(post: Post) -> None:
    event = wire_event(event_id=None)
    (first,) = post([event], f"{URL}?verbose=1").json()["results"]
    again = post([event, {**event, "attempt": 2}], f"{URL}?verbose=1").json()
    assert [one["status"] for one in again["results"]] == ["duplicate", "created"]
    assert again["results"][0]["event_id"] == first["event_id"]
    assert again["results"][1]["event_id"] != first["event_id"]


def test_json_lines_and_gzip_are_read(post: Post) -> None:
    lines = "\n".join(json.dumps(wire_event()) for _ in range(3)) + "\n\n"
    answer = post(lines.encode(), content_type="application/x-ndjson")
    assert answer.json()["accepted"] == 3
    packed = gzip.compress(json.dumps([wire_event()]).encode())
    answer = post(packed, coding="gzip")
    assert answer.json()["accepted"] == 1


@pytest.mark.parametrize(
    ("body", "line", "column"),
    [
        (b"[1,\n  x]", 2, 3),
        ('["é", x]'.encode(), 1, 7),
        (b'[{"a": 1, "a": 2}]', 1, None),
        (b"[x]", 1, 2),
        (b" ", 1, 1),
        (b"[1] [2]", 1, 5),
        (b"[" * 5000, 1, None),
        (b"[\xff]", 1, 2),
    ],
)
def test_a_body_that_is_not_json_is_located(
    post: Post, body: bytes, line: int, column: int | None
) -> None:
    answer = post(body)
    assert answer.status_code == 400
    fault = answer.json()
    assert fault["line"] == line
    assert column is None or fault["column"] == column


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"[x]", "not_json"), (b'{"a": 1, "a": 2}', "duplicate_key"), (b"[" * 5000, "too_deep")],
)
def test_the_code_names_what_is_wrong_with_a_body(post: Post, body: bytes, code: str) -> None:
    assert post(body).json()["code"] == code


def test_a_body_without_content_is_called_empty(post: Post) -> None:
    answer = post(b" \n")
    assert (answer.status_code, answer.json()["detail"]) == (400, "this is not JSON: it is empty")


def test_an_array_with_a_syntax_error_costs_what_follows_it(post: Post, project: Project) -> None:
    body = json.dumps([wire_event(), succeeded()])[:-1].encode() + b',\n{"name": nothing}]'
    answer = post(body)
    assert answer.status_code == 207
    told = answer.json()
    assert (told["accepted"], told["rejected"]) == (2, 1)
    (result,) = told["results"]
    assert (result["index"], result["status"]) == (2, "invalid")
    assert result["errors"][0]["message"].startswith("line 2, column 11: this is not JSON")
    assert rejects_of(project.pk).get().head == '{"name": nothing}]'


def lines_of(*lines: bytes | dict[str, Any]) -> bytes:
    return b"\n".join(
        line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines
    )


@pytest.mark.parametrize("content_type", ["application/x-ndjson", "application/json"])
@pytest.mark.parametrize(
    ("line", "fault", "code"),
    [
        (b'{"name": "graph.plan.succ', "line 2, column 25: this is not JSON", "not_json"),
        (b"{12:00:01 INFO retrying}", "line 2, column 2: this is not JSON", "not_json"),
        (b'{"name": 1, "name": 2}', "this key appears twice", "duplicate_key"),
        (b'{"a":' * 5_000, "levels", "too_deep"),
    ],
)
def test_a_broken_line_costs_itself_only(
    post: Post, project: Project, content_type: str, line: bytes, fault: str, code: str
) -> None:
    answer = post(lines_of(wire_event(), line, succeeded()), content_type=content_type)
    assert answer.status_code == 207
    told = answer.json()
    assert (told["accepted"], told["rejected"]) == (2, 1)
    (result,) = told["results"]
    assert (result["index"], result["event_id"], result["status"]) == (1, None, "invalid")
    (error,) = result["errors"]
    assert (error["path"], error["code"]) == ("", code)
    assert fault in error["message"]
    assert rejects_of(project.pk).get().head.startswith(line[:20].decode())


def test_a_log_line_among_events_is_named_by_its_line(post: Post) -> None:
    body = lines_of(b"INFO starting", b"", wire_event())
    told = post(body, content_type="application/x-ndjson").json()
    assert told["accepted"] == 1
    assert told["results"][0]["errors"][0]["message"].startswith("line 1, column 1")


@pytest.mark.parametrize("content_type", ["application/x-ndjson", "application/json"])
def test_a_number_that_is_none_costs_its_item_only(post: Post, content_type: str) -> None:
    events = [wire_event(temperature=float("nan")), wire_event(latency_ms=float("inf"))]
    items = [*events, wire_event(pod=float("-inf")), wire_event()]
    body = lines_of(*items) if "ndjson" in content_type else json.dumps(items).encode()
    told = post(body, content_type=content_type).json()
    assert (told["accepted"], told["rejected"]) == (1, 3)
    codes = [result["errors"][0]["code"] for result in told["results"]]
    assert codes == ["finite_number"] * 3


@pytest.mark.parametrize("content_type", ["application/x-ndjson", "application/json"])
def test_bytes_that_are_not_utf_8_are_replaced_and_the_answer_says_so(
    post: Post, content_type: str
) -> None:
    item = json.dumps(fresh(raw_output_preview="X")).encode().replace(b"X", b"M\xfcller")
    told = post(lines_of(item, fresh()), content_type=content_type).json()
    assert (told["accepted"], told["rejected"]) == (2, 0)
    (warning,) = told["warnings"]
    assert (warning["path"], warning["code"]) == ("", "not_utf_8")
    previews = EventPayload.objects.values_list("raw_output_preview", flat=True)
    assert "M\ufffdller" in previews


def test_an_array_with_a_byte_that_is_not_utf_8_is_read(post: Post) -> None:
    body = json.dumps([fresh(raw_output_preview="X"), fresh()]).encode()
    told = post(body.replace(b"X", b"\xff")).json()
    assert (told["accepted"], len(told["warnings"])) == (2, 1)


def test_outcomes_are_read_line_by_line_too(post: Post) -> None:
    minute = datetime.now(UTC).replace(second=0, microsecond=0).isoformat()
    row = {"minute": minute, "source": "bot", "node": "plan", "ok_first": 4.0}
    body = lines_of(row, b"cut {", {**row, "sequence": 1})
    told = post(body, "/api/v1/outcomes", "application/x-ndjson").json()
    assert (told["accepted"], told["rejected"]) == (2, 1)


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZIP"])
def test_gzip_goes_by_both_of_its_names(post: Post, coding: str) -> None:
    assert post(gzip.compress(json.dumps([wire_event()]).encode()), coding=coding).json()[
        "accepted"
    ]


def test_whole_numbers_may_be_written_with_a_point(post: Post, key: str) -> None:
    told = post([wire_event(input_tokens=12.0, attempt=2.0), wire_event(output_tokens=1.5)]).json()
    assert (told["accepted"], told["rejected"]) == (1, 1)
    assert told["results"][0]["errors"][0]["path"] == "/output_tokens"
    (item,) = get(key)["items"]
    assert (item["input_tokens"], item["attempt"]) == (12, 2)


@pytest.mark.parametrize("body", [b"null", b'"text"', b"7"])
def test_a_body_that_is_no_list_is_unprocessable(post: Post, body: bytes) -> None:
    assert post(body).status_code == 422


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/xml", "application/json; charset=latin-1", ""]
)
def test_other_media_types_are_refused(post: Post, content_type: str) -> None:
    assert post(b"[]", content_type=content_type).status_code == 415


def test_other_codings_are_refused(post: Post) -> None:
    assert post(b"[]", coding="br").status_code == 415


def test_bodies_beyond_the_bounds_are_too_large(post: Post) -> None:
    assert post(b"[" + b" " * (4 << 20) + b"]").status_code == 413
    assert post([succeeded()] * 1001).status_code == 413
    bomb = gzip.compress(b"[" + b" " * (32 << 20) + b"]")
    assert post(bomb, coding="gzip").status_code == 413
    long = b"\0" * (MAX_COMPRESSED_BYTES + 1)
    assert post(long, coding="gzip").status_code == 413


def test_a_cut_off_or_made_up_gzip_is_refused(post: Post) -> None:
    packed = gzip.compress(b"[]")
    for body in (packed[:-4], b"no gzip"):
        answer = post(body, coding="gzip")
        assert (answer.status_code, answer.json()["code"]) == (400, "not_gzip")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"attributes": {"n": 2**53 + 1}}, "integer_range"),
        ({"attributes": {"k" * 201: 1}}, "key_too_long"),
        ({"repairs": [{"a": 1}] * 1000}, "too_many_nodes"),
        ({"provider": ""}, "string_too_short"),
        ({"occurred_at": 1_700_000_000}, "time_text"),
        ({"occurred_at": "2026-11-21T14:32:07"}, "timezone_aware"),
        ({"temperature": None, "cycle": "1"}, "int_type"),
        ({"name": "graph.x.exploded"}, "event_name"),
    ],
)
def test_an_item_beyond_its_bounds_is_invalid_with_a_code(
    post: Post, change: dict[str, object], code: str
) -> None:
    answer = post([wire_event(**change)])
    assert answer.status_code == 207
    codes = {fault["code"] for fault in answer.json()["results"][0]["errors"]}
    assert code in codes


def test_deep_items_are_invalid_and_others_are_kept(post: Post) -> None:
    deep: object = 1
    for _ in range(40):
        deep = [deep]
    answer = post([wire_event(attributes={"a": deep}), wire_event()])
    assert answer.json()["accepted"] == 1


def test_numbers_that_overflow_are_refused(post: Post) -> None:
    body = json.dumps([wire_event(temperature=7.5)]).replace("7.5", "1e999")
    (result,) = post(body.encode()).json()["results"]
    assert result["errors"][0]["code"] == "finite_number"


def test_nul_and_lone_surrogates_are_replaced_at_the_door(post: Post) -> None:
    body = json.dumps([wire_event(raw_output_preview="a\0\ud800b")])
    assert post(body.encode()).json()["accepted"] == 1
    assert EventPayload.objects.get().raw_output_preview == "a\ufffd\ufffdb"


def test_the_key_of_the_request_is_masked_in_what_it_brings(post: Post, key: str) -> None:
    secret = key[len("fs_123456789012_") :]
    inside = base64.b64encode(f"key is {secret}".encode()).decode()
    post([wire_event(raw_output_preview=f"{secret} {key} {inside}")])
    preview = EventPayload.objects.get().raw_output_preview
    assert preview is not None
    assert preview.count("[REDACTED:failsoft_key]") == 3
    assert secret[:8] not in preview


def test_an_error_type_outside_the_list_is_kept_and_counted_as_other(post: Post, key: str) -> None:
    post([wire_event(parse_error_type="yaml_found")])
    (item,) = get(key)["items"]
    assert item["parse_error_type"] == "other"
    assert item["original_error_type"] == "yaml_found"


def test_plain_messages_are_taken_as_validation_errors(post: Post, key: str) -> None:
    post([wire_event(validation_errors=["no tool"])])
    (item,) = get(key)["items"]
    assert item["validation_errors"][0]["message"] == "no tool"


def test_null_is_a_value_of_provider_and_model(post: Post, key: str) -> None:
    event = wire_event() | {"provider": None, "model": None}
    assert post([event]).status_code == 200
    (item,) = get(key, provider="-")["items"]
    assert item["provider"] is None
    assert item["model"] is None


def test_events_are_listed_with_filters_newest_first(post: Post, key: str) -> None:
    began = datetime.now(UTC) - timedelta(hours=2)
    times = [(began + timedelta(minutes=m)).isoformat() for m in (0, 1, 60)]
    post(
        [
            wire_event(correlation_id="run-1", occurred_at=times[0]),
            degraded(correlation_id="run-1", occurred_at=times[1]),
            succeeded(correlation_id="job-2", occurred_at=times[2]),
        ]
    )
    kinds = [item["kind"] for item in get(key)["items"]]
    assert kinds == ["succeeded", "degraded", "parse_invalid"]
    assert len(get(key, correlation_id="run-1")["items"]) == 2
    assert len(get(key, name="graph.next_step.degraded")["items"]) == 1
    assert len(get(key, kind="not_json")["items"]) == 1
    assert len(get(key, outcome="ok_first")["items"]) == 1
    assert len(get(key, q="job")["items"]) == 1
    between = (began + timedelta(minutes=30)).isoformat()
    assert len(get(key, **{"from": between})["items"]) == 1
    assert len(get(key, to=between)["items"]) == 2


def test_words_without_a_range_are_looked_for_seven_days_back(post: Post, key: str) -> None:
    now = datetime.now(UTC)
    for days in (2, 6, 8):
        at = now - timedelta(days=days)
        post([wire_event(correlation_id=f"job-{days}", occurred_at=at.isoformat())])
    found = get(key, q="job")
    assert [item["correlation_id"] for item in found["items"]] == ["job-2", "job-6"]
    assert found["notes"]
    assert len(get(key)["items"]) == 3


def test_pages_of_events_follow_each_other(post: Post, key: str) -> None:
    post([wire_event() for _ in range(5)])
    first = get(key, limit="3")
    second = get(key, limit="3", cursor=first["next"])
    ids = [item["event_id"] for item in first["items"] + second["items"]]
    assert len(set(ids)) == 5
    assert second["next"] is None


@pytest.mark.parametrize(
    "asked",
    [
        {"limit": "0"},
        {"limit": "501"},
        {"limit": "x"},
        {"from": "yesterday"},
        {"from": "2026-11-21T10:00:00"},
        {"from": "2026-99-99T10:00:00Z"},
        {"from": "2026-11-22T00:00:00Z", "to": "2026-11-21T00:00:00Z"},
        {"outcome": "splendid"},
        {"cursor": "made-up"},
        {"modle": "x"},
    ],
)
def test_a_question_that_makes_no_sense_is_refused(key: str, asked: dict[str, str]) -> None:
    answer = Client().get(URL, asked, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 400
    assert set(answer.json()) & set(asked)
