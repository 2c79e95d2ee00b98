"""Schemathesis against the OpenAPI document: made-up requests, never 5xx.

A short run over what takes and lists rows, with a key of each scope; every operation with
SCHEMATHESIS_EXAMPLES=50, of one scope with `-k admin`.
"""

import json
import os
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpResponse
from django.test import Client
from hypothesis import HealthCheck, settings

from diagnostics.accounts import authentication
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.rest.docs import read_document

# Bodies of JSON lines are made in test_any_body.py.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Skipped test cases:UserWarning"),
]
IS_LONG = "SCHEMATHESIS_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "1"))
LISTS = "events|outcomes|deploys|failures|rejects|silences|alert-rules|incidents"
PATHS = "/api/v1/" if IS_LONG else f"/api/v1/({LISTS})$"
JSON_TYPE = "application/json"
BASE = "http://testserver"

schema = schemathesis.openapi.from_dict(dict(read_document()))


@pytest.fixture(params=list(Scope))
def key(request: pytest.FixtureRequest) -> str:
    authentication.forget_all()
    project = Project.objects.create(slug="p", name="P")
    return issue_key(project, "k", [request.param]).text


def send(case: Any, key: str) -> HttpResponse:
    """Send a case through Django's own client: it shares the test's transaction."""
    told = case.as_transport_kwargs(base_url=BASE)
    path = told["url"].removeprefix(BASE)
    if asked := told.get("params"):
        path = f"{path}?{urlencode(asked, doseq=True, errors='replace')}"
    client = Client(raise_request_exception=False)
    headers = {"Authorization": f"Bearer {key}"}
    body, kind = told.get("data") or b"", JSON_TYPE
    if "json" in told:
        body = json.dumps(told["json"], cls=DjangoJSONEncoder)
    if isinstance(body, dict):
        body = urlencode(body)
    return client.generic(case.method, path, body, content_type=kind, headers=headers)  # type: ignore[return-value] # the client's own class of it


@pytest.mark.slow
@schema.include(path_regex=f"^{PATHS}").parametrize()
@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
def test_operations_answer_without_5xx(case: Any, key: str) -> None:
    answer = send(case, key)
    assert answer.status_code < 500
    if answer.status_code >= 400:
        body = json.loads(answer.content)
        assert isinstance(body["detail"], str), body
        assert isinstance(body["code"], str), body
