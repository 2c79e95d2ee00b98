"""The OpenAPI document is valid and has a page that needs no script."""

import json

import pytest
from django.test import Client
from drf_spectacular.validation import validate_schema
from jsonschema import Draft202012Validator

from diagnostics.rest.docs import list_operations, read_document
from diagnostics.rest.resources import EXAMPLES


@pytest.mark.slow
def test_the_document_is_valid_and_names_our_operations(capsys: pytest.CaptureFixture[str]) -> None:
    read_document.cache_clear()
    document = read_document()
    assert capsys.readouterr().err == ""
    validate_schema(document)  # type: ignore[no-untyped-call] # their own
    names = [operation["anchor"] for operation in list_operations(document)]
    assert len(names) == len(set(names))
    assert {"events_create", "events_list", "goals_retrieve", "goals_cancel", "verdict"} <= {*names}
    schemes = document["components"]["securitySchemes"]
    assert schemes["ApiKey"]["scheme"] == "bearer"


def test_every_example_fits_what_it_is_an_example_of() -> None:
    document = json.loads(json.dumps(read_document(), default=str))
    schemas = document["components"]["schemas"]
    paths = document["paths"].values()
    operations = {one["operationId"] for path in paths for one in path.values()}
    assert EXAMPLES.keys() <= schemas.keys() | operations
    for name in EXAMPLES.keys() & schemas.keys():
        (example,) = schemas[name]["examples"]
        assert isinstance(example, list) or example.keys() <= schemas[name]["properties"].keys()
        schema = {**document, "$ref": f"#/components/schemas/{name}"}
        errors = Draft202012Validator(schema).iter_errors(example)
        # An example need not show every field.
        assert [one.message for one in errors if one.validator != "required"] == [], name


@pytest.mark.django_db
def test_the_document_is_served() -> None:
    answer = Client().get("/api/schema", headers={"Accept": "application/json"})
    assert answer.status_code == 200
    assert "/api/v1/events" in answer.json()["paths"]


@pytest.mark.django_db
def test_the_page_shows_every_operation_without_inline_code() -> None:
    answer = Client().get("/api/docs/")
    assert answer.status_code == 200
    page = answer.text
    for operation in list_operations(read_document()):
        assert f'id="{operation["anchor"]}"' in page
    assert "graph.next_step.parse_invalid" in page
    assert " style=" not in page
    assert "script-src" not in page
    assert "Content-Security-Policy" in answer.headers
