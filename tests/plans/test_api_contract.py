"""The contract over HTTP: its version, its schemas, and where to check."""

import pytest
from django.test import Client

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from failsoft.plans.contract import CONTRACT_VERSION, NAMES, contract_schema


@pytest.fixture
def client(db: None) -> Client:
    """A client with a key that may read."""
    project = Project.objects.create(slug="lab", name="Lab")
    key = issue_key(project, "tests", [Scope.READ]).text
    return Client(headers={"Authorization": f"Bearer {key}"})


@pytest.mark.parametrize("path", ["/api/v1/contract", "/api/v1/contract/"])
def test_s2_45_the_index_names_the_version_and_the_schemas(client: Client, path: str) -> None:
    index = client.get(path).json()

    assert index["contract_version"] == CONTRACT_VERSION
    for name in NAMES:
        assert index["schemas"][name] == f"/api/v1/contract/{name}.schema.json"
        assert index["checks"][name] == f"/api/v1/contract/{name}"


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_served_as_a_schema(client: Client, name: str) -> None:
    answer = client.get(f"/api/v1/contract/{name}.schema.json")

    assert answer.headers["Content-Type"] == "application/schema+json"
    assert answer.json() == contract_schema(name)


def test_there_is_no_other_schema(client: Client) -> None:
    assert client.get("/api/v1/contract/tools.schema.json").status_code == 404


def test_the_contract_needs_a_key(db: None) -> None:
    assert Client().get("/api/v1/contract/").status_code == 401
