"""Schemathesis with state: sequences of requests that use what earlier ones returned.

Ids of created rows and of lists go into the paths and bodies of the next requests, with a key
of each scope. Links between operations are inferred from the OpenAPI document.
"""

import json
from collections import Counter
from typing import Any

import pytest
import requests
import schemathesis
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from schemathesis.core.transport import Response

from diagnostics.accounts import authentication
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.rest.docs import read_document
from tests.security.test_schema_conformance import send

pytestmark = [pytest.mark.django_db, pytest.mark.nightly]
EXAMPLES, STEPS = 60, 10
schema = schemathesis.openapi.from_dict(dict(read_document()))


@pytest.mark.parametrize("scope", list(Scope))
def test_no_sequence_of_requests_gets_5xx(scope: Scope) -> None:
    authentication.forget_all()
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", [scope]).text
    statuses: Counter[int] = Counter()

    class Sequence(schema.as_state_machine()):  # type: ignore[misc] # made at run time
        def setup(self) -> None:
            self._savepoint = transaction.savepoint()

        def teardown(self) -> None:
            transaction.savepoint_rollback(self._savepoint)
            authentication.forget_all()

        def call(self, case: Any, **_: Any) -> Response:
            answer = send(case, key)
            statuses[answer.status_code] += 1
            request = requests.Request(case.method, "http://testserver/").prepare()
            headers = {name: [value] for name, value in answer.headers.items()}
            content = b"" if answer.streaming else answer.content
            return Response(answer.status_code, headers, content, request, 0.1, verify=False)

        def validate_response(self, response: Response, case: Any, *_: Any, **__: Any) -> None:
            assert response.status_code < 500, (case.method, case.formatted_path, case.body)
            if response.status_code >= 400:
                body = json.loads(response.content)
                assert isinstance(body.get("detail", body.get("message")), str), body

    run_state_machine_as_test(
        Sequence,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert statuses[401] == 0
    assert (statuses[403] == 0) == (scope is Scope.ADMIN)
