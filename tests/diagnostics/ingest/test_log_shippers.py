"""Bodies as log shippers send them by default, taken without a remap.

Written down from their documentation and sources: Vector's http sink (encoding.codec json,
framing by commas or lines), Fluent Bit's http output (format json, json_lines, both sent as
application/json) and Logstash's http output (format json and json_batch).
"""

import gzip
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.store.models import Event, EventPayload
from tests.integrations.families.schema import PLAN

pytestmark = pytest.mark.django_db
JSON, LINES = "application/json", "application/x-ndjson"


def records() -> list[dict[str, Any]]:
    """Give what an agent writes into its log: a good answer, and a bad one of another run."""
    common = {"name": "answered", "node": "plan", "model": "m", "finish_reason": "stop"}
    texts = ('{"title": "Refund", "steps": []}', '{"title": "Refund"}')
    return [
        {**common, "correlation_id": f"run-{n}", "attempt": 1, "text": text}
        for n, text in enumerate(texts)
    ]


def lines(items: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(item) + "\n" for item in items).encode()


def at() -> datetime:
    return clock.now() - timedelta(minutes=5)


def by_vector(*, is_decoded: bool = True) -> list[dict[str, Any]]:
    """A source that decodes JSON leaves its fields beside Vector's, another one the text."""
    stamp = at().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    about = {"host": "web-1", "source_type": "file", "file": "/var/log/a", "timestamp": stamp}
    told = [one if is_decoded else {"message": json.dumps(one)} for one in records()]
    return [{**about, **one} for one in told]


def by_fluent_bit(*, is_parsed: bool = True) -> list[dict[str, Any]]:
    """Its date comes first, a number with a fraction."""
    told = [one if is_parsed else {"log": json.dumps(one)} for one in records()]
    return [{"date": at().timestamp(), **one, "stream": "stdout"} for one in told]


def by_fluent_bit_in_kubernetes() -> list[dict[str, Any]]:
    pod = {"pod_name": "agent-1", "labels": {"app": "agent"}, "annotations": {}}
    return [{**one, "kubernetes": pod} for one in by_fluent_bit()]


def by_logstash(*, is_ecs: bool = True) -> list[dict[str, Any]]:
    stamp = at().isoformat(timespec="milliseconds").replace("+00:00", "Z")
    about: dict[str, Any] = {"@timestamp": stamp, "@version": "1", "tags": ["agent"]}
    host = {"host": {"name": "web-1"}} if is_ecs else {"host": "web-1", "path": "/var/log/a"}
    kept = [{"event": {"original": json.dumps(one)}} if is_ecs else {} for one in records()]
    return [{**about, **host, **one, **more} for one, more in zip(records(), kept, strict=True)]


def by_logstash_unparsed() -> list[dict[str, Any]]:
    about = {"@timestamp": at().isoformat(), "@version": "1", "host": {"name": "web-1"}}
    return [{**about, "message": json.dumps(one)} for one in records()]


def array(items: list[dict[str, Any]]) -> bytes:
    return json.dumps(items, separators=(",", ":")).encode()


BODIES: dict[str, tuple[Callable[[], bytes], str]] = {
    "vector, json": (lambda: array(by_vector()), JSON),
    "vector, lines": (lambda: lines(by_vector()), LINES),
    "vector, text of a file": (lambda: array(by_vector(is_decoded=False)), JSON),
    "fluent bit, json": (lambda: array(by_fluent_bit()), JSON),
    "fluent bit, json_lines": (lambda: lines(by_fluent_bit()), JSON),
    "fluent bit, text of a container": (lambda: array(by_fluent_bit(is_parsed=False)), JSON),
    "fluent bit, kubernetes": (lambda: array(by_fluent_bit_in_kubernetes()), JSON),
    "logstash, json_batch": (lambda: array(by_logstash()), JSON),
    "logstash, json_batch without ECS": (lambda: array(by_logstash(is_ecs=False)), JSON),
    "logstash, text of a line": (lambda: array(by_logstash_unparsed()), JSON),
}


@pytest.fixture
def key() -> str:
    project = Project.objects.create(slug="p", name="P")
    register_schema(project, "plan", PLAN, "3")
    return issue_key(project, "shipper", [Scope.INGEST]).text


def send(key: str, body: bytes, kind: str, **headers: str) -> dict[str, Any]:
    asked = {"Authorization": f"Bearer {key}", **headers}
    answer = Client().post("/api/v1/events", body, content_type=kind, headers=asked)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


@pytest.mark.parametrize("name", BODIES)
def test_what_a_shipper_sends_is_taken_as_it_is_and_once(name: str, key: str) -> None:
    write, kind = BODIES[name]
    body = write()
    assert send(key, body, kind)["accepted"] == 2
    good, bad = Event.objects.order_by("correlation_id")
    assert (good.kind, bad.kind, bad.parse_error_type) == (
        *("succeeded", "parse_invalid"),
        "schema_invalid",
    )
    assert abs(good.occurred_at - at()) < timedelta(minutes=1)
    kept = EventPayload.objects.get().attributes
    assert any("web-1" in str(value) or value in ("stdout", "agent-1") for value in kept.values())
    assert "Refund" not in json.dumps(kept)
    again = send(key, gzip.compress(body), kind, **{"Content-Encoding": "gzip"})
    assert (again["accepted"], again["duplicates"]) == (0, 2)


def test_logstash_sends_one_event_a_request_with_format_json(key: str) -> None:
    for item in by_logstash():
        assert send(key, json.dumps(item).encode(), JSON)["accepted"] == 1
    assert Event.objects.count() == 2


def test_a_line_that_is_no_event_is_refused_and_the_others_are_stored(key: str) -> None:
    body = lines([*by_fluent_bit(), {"date": at().timestamp(), "log": "listening on 8080"}])
    headers = {"Authorization": f"Bearer {key}"}
    answer = Client().post("/api/v1/events", body, content_type=JSON, headers=headers)
    assert (answer.status_code, answer.json()["accepted"]) == (207, 2)
    (refused,) = answer.json()["results"]
    assert (refused["index"], refused["errors"][0]["path"]) == (2, "/name")


@pytest.mark.parametrize(
    "body", [b'{"a": 1,\n{"b": 2}', b'{"a": 1}\n{"b": x}', b'{"a": {\n"b": 1}\n{"c": 2}']
)
def test_lines_that_are_not_json_are_located(key: str, body: bytes) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    answer = Client().post("/api/v1/events", body, content_type=JSON, headers=headers)
    assert (answer.status_code, answer.json()["accepted"]) == (207, 0)
    messages = [result["errors"][0]["message"] for result in answer.json()["results"]]
    assert any("this is not JSON" in message for message in messages)


def test_a_broken_object_of_several_lines_is_refused_as_a_whole(key: str) -> None:
    body = b'{\n  "a": [\n    {"b": 1}\n    {"b": 2}\n  ]\n}'
    headers = {"Authorization": f"Bearer {key}"}
    answer = Client().post("/api/v1/events", body, content_type=JSON, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["line"] > 1


def test_a_broken_array_of_several_lines_is_not_read_as_lines(key: str) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    body = b'[\n{"a": 1}\n{"b": 2}\n]'
    answer = Client().post("/api/v1/events", body, content_type=JSON, headers=headers)
    assert answer.status_code == 207
    assert answer.json()["results"][-1]["errors"][0]["message"].startswith("line 3, column 1:")
