"""The rejects inbox: redacted, bounded in number and rate, never in the way."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import Client

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest import rejects
from diagnostics.ingest.models import Reject
from tests.diagnostics.builders import wire_event

pytestmark = pytest.mark.django_db
Post = Callable[..., Any]


@pytest.fixture(autouse=True)
def _full_allowance() -> Iterator[None]:
    rejects.allowance.clear()
    yield
    rejects.allowance.clear()


@pytest.fixture
def key(project: Project) -> str:
    return issue_key(project, "support bot", [Scope.INGEST, Scope.READ]).text


@pytest.fixture
def post(key: str) -> Post:
    def send(body: object, kind: str = "application/json") -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {key}"}
        return Client().post("/api/v1/events", raw, content_type=kind, headers=headers)

    return send


def inbox(key: str, **asked: str) -> list[dict[str, Any]]:
    headers = {"Authorization": f"Bearer {key}"}
    answer = Client().get("/api/v1/rejects", asked, headers=headers)
    assert answer.status_code == 200, answer.content
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_a_refused_item_is_kept_with_place_reason_and_sender(post: Post, key: str) -> None:
    bad = wire_event(attempt=0, source="bot")
    assert post([wire_event(), bad]).status_code == 207
    (item,) = inbox(key)
    assert (item["index"], item["path"], item["code"]) == (1, "/attempt", "greater_than_equal")
    assert (item["source"], item["key_name"]) == ("bot", "support bot")
    assert item["event_id"] == bad["event_id"]
    assert json.loads(item["head"])["attempt"] == 0
    assert (item["endpoint"], item["http_status"]) == ("/api/v1/events", 207)


@pytest.mark.parametrize(
    ("body", "kind", "code", "http_status"),
    [
        (b"[1, x", "application/json", "not_json", 400),
        (b"7", "application/json", "not_a_list", 422),
        (b"<x/>", "text/xml", "unsupported_media_type", 415),
    ],
)
def test_a_refused_request_is_kept_as_a_whole(
    post: Post, key: str, body: bytes, kind: str, code: str, http_status: int
) -> None:
    assert post(body, kind).status_code == http_status
    (item,) = inbox(key)
    assert (item["index"], item["code"], item["http_status"]) == (None, code, http_status)


def test_no_secret_reaches_the_inbox(post: Post, key: str) -> None:
    secret = key.split("_", 2)[2]
    post([{"password": "hunter2-hunter2", secret: 1, "event_id": key}])
    post(f'[{{"a": "{key}"'.encode())
    assert len(inbox(key)) == 2
    written = json.dumps(list(Reject.objects.values()), default=str)
    assert secret not in written
    assert "hunter2" not in written
    assert "[REDACTED:" in written


def test_a_long_item_is_kept_by_its_head(post: Post, key: str) -> None:
    post([wire_event(attempt=0, raw_output_preview="word " * 100_000)])
    (item,) = inbox(key)
    assert len(item["head"].encode()) <= 2048
    assert item["size_bytes"] > 400_000


def test_a_batch_of_bad_items_leaves_ten(post: Post, key: str) -> None:
    post([{"n": n} for n in range(100)])
    assert sorted(item["index"] for item in inbox(key)) == list(range(10))


def test_a_flood_leaves_the_first_few(post: Post, key: str) -> None:
    for _ in range(40):
        post(b"{}")
    assert 20 <= Reject.objects.count() <= 30


def test_the_oldest_make_room(post: Post, settings: Any) -> None:
    settings.FAILSOFT_REJECTS_KEPT = 30
    for _ in range(10):
        post([{"n": n} for n in range(10)])
    assert 30 <= Reject.objects.count() <= 50
    newest = Reject.objects.order_by("-id").first()
    assert newest is not None


def test_an_inbox_that_cannot_be_written_changes_no_answer(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise DatabaseError

    monkeypatch.setattr(rejects, "_write", fail)
    answer = post([wire_event(), {}])
    assert (answer.status_code, answer.json()["accepted"]) == (207, 1)


def test_the_inbox_is_narrowed_and_paged(post: Post, key: str) -> None:
    post(b"{}")
    post(b"[x")
    (only,) = inbox(key, code="not_json")
    assert only["code"] == "not_json"
    assert len(inbox(key, limit="1")) == 1
    headers = {"Authorization": f"Bearer {key}"}
    first = Client().get("/api/v1/rejects", {"limit": "1"}, headers=headers).json()
    assert len(inbox(key, cursor=first["next"])) == 1
