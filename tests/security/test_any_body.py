"""Any body at all gets 2xx or 4xx, never 5xx: 500 here, 10,000 with FUZZ_BODIES=10000."""

import gzip
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diagnostics.accounts import authentication
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest import quotas, rejects
from diagnostics.ingest.api.outcomes import PostedOutcome
from failsoft.events import PostedEvent
from tests.diagnostics.builders import degraded, succeeded, wire_event

pytestmark = pytest.mark.django_db
BODIES = int(os.environ.get("FUZZ_BODIES", "500"))
ENDPOINTS = ("events", "outcomes", "deploys", "schemas/next_step")
KINDS = ("application/json", "application/x-ndjson", "application/json; charset=utf-8")
FIELDS = sorted({*PostedEvent.model_fields, *PostedOutcome.model_fields, "schema", "at", "kind"})

texts = st.one_of(st.text(max_size=40), st.sampled_from(["\0", "\ud800", "", "-", "🦜"]))
numbers = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True),
    st.sampled_from([0, 1, -1, 2**31, 2**53 + 1]),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)
changes = st.dictionaries(st.sampled_from(FIELDS), values, max_size=4)


@st.composite
def items(draw: st.DrawFn) -> Any:
    """Something near an event, an outcome or a deploy, or nothing like one."""
    if draw(st.integers(0, 3)) == 0:
        return draw(values)
    base = draw(st.sampled_from([wire_event, succeeded, degraded, outcome, deploy]))()
    return {**base, **draw(changes)}


def outcome() -> dict[str, Any]:
    at = "2026-11-21T14:32:00Z"
    return {"minute": at, "source": "s", "node": "plan", "ok_first": 1}


def deploy() -> dict[str, Any]:
    return {"at": "2026-11-21T14:32:00Z", "kind": "prompt", "version": "v"}


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, bool]:
    """Give a body and whether it is packed."""
    how = draw(st.integers(0, 5))
    if how == 0:
        return draw(st.binary(max_size=200)), draw(st.booleans())
    found = draw(st.one_of(st.lists(items(), max_size=3), items()))
    body = json.dumps(found, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    if how == 1:
        place = draw(st.integers(0, max(len(body) - 1, 0)))
        body = body[:place] + draw(st.binary(max_size=3)) + body[place + 1 :]
    is_packed = draw(st.integers(0, 9)) == 0
    return (gzip.compress(body) if is_packed else body), is_packed


@pytest.fixture
def key() -> Iterator[str]:
    authentication.forget_all()
    quotas.leases.clear()
    rejects.allowance.clear()
    project = Project.objects.create(slug="p", name="P")
    yield issue_key(project, "k", [Scope.ADMIN]).text
    authentication.forget_all()
    quotas.leases.clear()


@pytest.mark.slow
@settings(
    max_examples=BODIES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize="FUZZ_BODIES" not in os.environ,
)
@given(body=bodies(), endpoint=st.sampled_from(ENDPOINTS), kind=st.sampled_from(KINDS))
def test_no_body_gets_5xx(key: str, body: tuple[bytes, bool], endpoint: str, kind: str) -> None:
    sent, is_packed = body
    headers = {"Authorization": f"Bearer {key}"}
    if is_packed:
        headers["Content-Encoding"] = "gzip"
    client = Client(raise_request_exception=False)
    send = client.put if endpoint.startswith("schemas") else client.post
    answer = send(f"/api/v1/{endpoint}", sent, content_type=kind, headers=headers)
    assert answer.status_code < 500, answer.content[:500]
    assert answer["Content-Type"] == "application/json"


@settings(max_examples=BODIES // 4, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    asked=st.dictionaries(
        st.sampled_from(
            [
                *("from", "to", "range", "tz", "q", "limit", "cursor", "format"),
                *("model", "kind", "outcome", "attempt", "name", "pointer", "other"),
            ]
        ),
        st.one_of(texts, st.sampled_from(["2026-11-21T14:32:00Z", "1", "csv", "7d"])),
        max_size=4,
    ),
    endpoint=st.sampled_from(["events", "series", "deploys", "rejects", "goals"]),
)
def test_no_query_gets_5xx(key: str, asked: dict[str, str], endpoint: str) -> None:
    sent = {name: text.encode("utf-8", "replace") for name, text in asked.items()}
    headers = {"Authorization": f"Bearer {key}"}
    client = Client(raise_request_exception=False)
    answer = client.get(f"/api/v1/{endpoint}", sent, headers=headers)
    assert answer.status_code < 500, answer.getvalue()[:500]
