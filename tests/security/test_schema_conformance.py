"""Schemathesis against the OpenAPI document: made-up requests, never 5xx.

A short run over what takes and lists events; every operation with SCHEMATHESIS_EXAMPLES=50.
"""

import json
import os
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from django.core.serializers.json import DjangoJSONEncoder
from django.test import Client
from hypothesis import HealthCheck, settings

from diagnostics.access import key_cache
from diagnostics.access.projects import issue_key
from diagnostics.api.docs import read_document
from diagnostics.core.api_keys import Scope
from diagnostics.models import Project

# Bodies of JSON lines are made in test_any_body.py.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Skipped test cases:UserWarning"),
]
IS_LONG = "SCHEMATHESIS_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "2"))
PATHS = "/api/v1/" if IS_LONG else "/api/v1/(events|outcomes|deploys|failures|rejects)$"
JSON_TYPE = "application/json"
BASE = "http://testserver"

schema = schemathesis.openapi.from_dict(dict(read_document()))


@pytest.fixture
def key() -> str:
    key_cache.forget_all()
    project = Project.objects.create(slug="p", name="P")
    return issue_key(project, "k", [Scope.ADMIN]).text


def send(case: Any, key: str) -> int:
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
    answer = client.generic(case.method, path, body, content_type=kind, headers=headers)
    return answer.status_code


@schema.include(path_regex=f"^{PATHS}").parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_operations_answer_without_5xx(case: Any, key: str) -> None:
    assert send(case, key) < 500
