"""/api/docs/: the OpenAPI document as a page without scripts."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator

METHODS = ("get", "post", "put", "patch", "delete")
Json = Mapping[str, Any]


@require_safe
def api_docs(request: HttpRequest) -> HttpResponse:
    document = read_document()
    operations = list(list_operations(document))
    frame = {"operations": operations, "info": document["info"]}
    return render(request, "api/docs.html", frame)


@cache
def read_document() -> Json:
    """Return the OpenAPI document, generated once per process."""
    generator: Any = SchemaGenerator
    document: Json = generator().get_schema(request=None, public=True)
    return document


def list_operations(document: Json) -> Iterator[Json]:
    """Yield what the page shows of each operation."""
    for path, methods in sorted(document["paths"].items()):
        for method in METHODS:
            if method in methods:
                yield _read_operation(path, method, methods[method], document)


def _read_operation(path: str, method: str, operation: Json, document: Json) -> Json:
    answers = operation.get("responses", {})
    return {
        "anchor": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": operation.get("description", "").strip(),
        "parameters": operation.get("parameters", []),
        "request": _show_content(operation.get("requestBody", {}), document),
        "answers": [
            (code, _show_content(answer, document)) for code, answer in sorted(answers.items())
        ],
    }


def _show_content(body: Json, document: Json) -> str:
    """Show a body by its examples; where there are none, by the names and types of its fields."""
    for media in body.get("content", {}).values():
        shape = _outline(media.get("schema", {}), document, 4)
        return json.dumps(shape, indent=2, ensure_ascii=False)
    return ""


def _outline(schema: Json, document: Json, depth: int) -> object:
    """Return an example of a schema, else its shape: names and, in place of values, types."""
    schema = _resolve(schema, document)
    if "examples" in schema:
        return schema["examples"][0]
    if "properties" in schema and depth:
        return {
            name: _outline(part, document, depth - 1) for name, part in schema["properties"].items()
        }
    if "items" in schema and depth:
        return [_outline(schema["items"], document, depth - 1)]
    return " | ".join(dict.fromkeys(_types_of(schema, document)))


def _resolve(schema: Json, document: Json) -> Json:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    resolved: Json = document.get("components", {}).get("schemas", {}).get(name, schema)
    return resolved


def _types_of(schema: Json, document: Json) -> Iterator[str]:
    schema = _resolve(schema, document)
    options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if options:
        for option in options:
            yield from _types_of(option, document)
    elif "enum" in schema:
        yield from ("null" if value is None else str(value) for value in schema["enum"])
    else:
        kind = schema.get("type", "any")
        yield from kind if isinstance(kind, list) else [kind]
