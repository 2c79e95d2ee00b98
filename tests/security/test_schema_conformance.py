"""Schemathesis against the OpenAPI document: answers are the ones it tells of, never 5xx.

A bounded run; more with SCHEMATHESIS_EXAMPLES=200.
"""

import os
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from config.wsgi import application
from diagnostics import key_cache
from diagnostics.api.docs import read_document
from diagnostics.core.api_keys import Scope
from diagnostics.models import Project
from diagnostics.projects import issue_key

pytestmark = pytest.mark.django_db
EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "4"))

schema = schemathesis.openapi.from_dict(read_document())
schema.app = application


@pytest.fixture
def key() -> str:
    key_cache.forget_all()
    project = Project.objects.create(slug="p", name="P")
    return issue_key(project, "k", [Scope.ADMIN]).text


@schema.include(path_regex=r"^/api/v1/").parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_every_operation_answers_as_documented(case: Any, key: str) -> None:
    case.headers = {**(case.headers or {}), "Authorization": f"Bearer {key}"}
    answer = case.call()
    case.validate_response(
        answer,
        checks=[schemathesis.checks.not_a_server_error],
    )
