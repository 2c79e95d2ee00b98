"""Mass assignment over REST: no writing endpoint takes a field that is not its own.

Every operation of the OpenAPI document that has a body gets columns of its row that only the
product writes, columns of other tables and made-up names.
"""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts import authentication
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.rest.docs import read_document
from diagnostics.store.models import Event
from failsoft.events import PostedEvent
from plans.models.run import Run
from tests.diagnostics.builders import succeeded
from tests.security.addresses import all_addresses
from tests.security.foreign_rows import FIXED, first_of, model_of

pytestmark = pytest.mark.django_db
JSON_TYPE = "application/json"
# Columns that only the product writes, of any table; and one that no table has.
FOREIGN = (
    *("id", "pk", "project", "project_id", "created_at", "created_by", "updated_at"),
    *("is_superuser", "is_staff", "role", "scopes", "secret_hash", "password"),
    *("lease_until", "fencing_token", "archived_at", "resolved_by", "no_such_field"),
)
DOCUMENT = dict(read_document())
# Bodies that are read as a whole: events and spans have attributes, plans keys of their own.
READ_WHOLE = frozenset(
    {
        *("/api/v1/contract/payload", "/api/v1/contract/results", "/api/v1/events"),
        *("/api/v1/plans/runs", "/v1/logs", "/v1/traces"),
    }
)


def operations() -> Iterator[Any]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {}) if operation else {}
            if JSON_TYPE in content and path not in READ_WHOLE:
                fields = field_names(content[JSON_TYPE]["schema"])
                yield pytest.param(path, method, fields, id=f"{method} {path}")


def field_names(schema: Any) -> frozenset[str]:
    """Return the fields that a body may have."""
    if "$ref" in schema:
        return field_names(DOCUMENT["components"]["schemas"][schema["$ref"].split("/")[-1]])
    parts = [*schema.get("oneOf", ()), *schema.get("anyOf", ()), *schema.get("allOf", ())]
    return frozenset(schema.get("properties", ())).union(*map(field_names, parts))


@pytest.fixture
def project() -> Iterator[Project]:
    authentication.forget_all()
    yield Project.objects.create(slug="p", name="P")
    authentication.forget_all()


def send(project: Project, method: str, path: str, body: object) -> Any:
    headers = {"Authorization": f"Bearer {issue_key(project, 'k', [Scope.ADMIN]).text}"}
    return Client(headers=headers).generic(method.upper(), path, json.dumps(body), JSON_TYPE)


def path_to_a_row(template: str, project: Project) -> str:
    """Return the path with the keys of rows of the project."""
    plain = re.sub(r"[{}]", "", template)
    route = next(a for a in all_addresses() if re.sub(r"<(\w+:)?|>", "", f"/{a.route}") == plain)
    values = {}
    for name in route.names:
        model = model_of(route.route, name)
        row = str(first_of(model, project).pk) if model else FIXED[name][0]
        values[name] = {"name": "echo", "verb": "isolate"}.get(name, row)
    return route.path(**values)


@pytest.mark.parametrize(("path", "method", "fields"), list(operations()))
def test_a_field_that_is_not_of_the_body_is_refused_by_name(
    project: Project, path: str, method: str, fields: frozenset[str]
) -> None:
    foreign = {name: 1 for name in FOREIGN if name not in fields}
    answer = send(project, method, path_to_a_row(path, project), foreign)
    assert 200 < answer.status_code < 500
    text = answer.content.decode()
    assert "and nothing else" in text or all(name in text for name in foreign)


@pytest.mark.parametrize(("path", "method", "fields"), list(operations()))
def test_a_body_that_is_nested_too_deep_is_refused(
    project: Project, path: str, method: str, fields: frozenset[str]
) -> None:
    headers = {"Authorization": f"Bearer {issue_key(project, 'k', [Scope.ADMIN]).text}"}
    client: Any = Client(headers=headers, raise_request_exception=False)
    address, body = path_to_a_row(path, project), b"[" * 100_000
    assert client.generic(method.upper(), address, body, JSON_TYPE).status_code in (400, 422)


def test_columns_of_an_event_are_attributes_at_most(project: Project) -> None:
    other = Project.objects.create(slug="q", name="Q")
    columns = {field.name for field in Event._meta.get_fields()} - set(PostedEvent.model_fields)
    names = sorted(columns | set(FOREIGN))
    events = [
        {**dict.fromkeys(names[begin : begin + 20], str(other.pk)), **succeeded()}
        for begin in range(0, len(names), 20)
    ]
    answer = send(project, "POST", "/api/v1/events", events).json()
    assert answer["accepted"] == len(events), answer
    since = clock.now() - timedelta(minutes=5)
    assert Event.objects.filter(project=project, received_at__gt=since).count() == len(events)
    assert not Event.objects.filter(project=other).exists()


def test_keys_of_a_plan_are_none_of_its_run(project: Project) -> None:
    other = Project.objects.create(slug="q", name="Q")
    columns = {field.name for field in Run._meta.get_fields() if field.concrete}
    columns -= {"contract_version"}
    step = {"step_id": "step_1", "tool": {"name": "echo", "args": {}}}
    plan = {**dict.fromkeys((*columns, *FOREIGN), other.pk), "steps": [step]}
    answer = send(project, "POST", "/api/v1/plans/runs", plan)
    assert answer.status_code in (200, 201, 202), answer.content
    run = Run.objects.get()
    assert (run.project_id, run.state) == (project.pk, Run.State.QUEUED)
    assert str(run.pk) != str(other.pk)
