"""What the HTTP API takes and answers changes on purpose only: all of it is recorded.

Texts and the names of components may change: they mean nothing to a client.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diagnostics.rest.docs import read_document

GOLDEN = Path(__file__).with_name("contract") / "http/openapi.json"
RECORD = "RECORD_OPENAPI"
HOW = f"{RECORD}=1 .venv/bin/python -m pytest tests/{Path(__file__).name}"
TEXTS = {"description", "summary", "title", "example", "examples", "tags", "operationId"}
NOTHING = object()
LINE, SHOWN, TAIL = 100, 200, 3


def test_the_http_api_takes_and_answers_what_is_recorded() -> None:
    document = json.loads(json.dumps(read_document(), default=str))
    now = without_texts({key: document[key] for key in ("paths", "components")})
    if os.environ.get(RECORD):
        GOLDEN.write_text(in_lines(now) + "\n", encoding="utf-8")
    recorded = json.loads(GOLDEN.read_text(encoding="utf-8"))
    if changes := describe(differences(in_full(recorded), in_full(now))):
        said = ["The HTTP API changed:", *changes, f"If it is meant: {HOW}"]
        pytest.fail("\n".join(said), pytrace=False)


def without_texts(part: Any, *, is_named: bool = False) -> Any:
    """Drop the texts, but no property that is called like one; order what has no order."""
    if isinstance(part, list):
        return sorted((without_texts(item) for item in part), key=json.dumps)
    if not isinstance(part, dict):
        return part
    kept = {
        key: without_texts(item, is_named=key == "properties")
        for key, item in part.items()
        if is_named or key not in TEXTS
    }
    if isinstance(kept.get("parameters"), list):
        kept["parameters"] = {
            f"{one.pop('in')} {one.pop('name')}": one for one in kept["parameters"]
        }
    return kept


def in_lines(part: Any, indent: str = "") -> str:
    """Return sorted JSON in which whatever fits is one line."""
    line = json.dumps(part, sort_keys=True)
    if not isinstance(part, dict | list) or len(indent + line) <= LINE:
        return line
    deeper = f"{indent} "
    lines = (
        [f"{deeper}{json.dumps(key)}: {in_lines(part[key], deeper)}" for key in sorted(part)]
        if isinstance(part, dict)
        else [deeper + in_lines(item, deeper) for item in part]
    )
    return line[0] + "\n" + ",\n".join(lines) + f"\n{indent}{line[-1]}"


def in_full(document: Any) -> Any:
    """Put components in the place of their names; one inside itself is cut."""

    def fill(part: Any, above: tuple[str, ...] = ()) -> Any:
        if isinstance(part, list):
            is_plain = not any(isinstance(item, dict) for item in part)
            return part if is_plain else {n: fill(item, above) for n, item in enumerate(part)}
        if not isinstance(part, dict):
            return part
        name = part.get("$ref")
        if not isinstance(name, str):
            return {key: fill(item, above) for key, item in part.items()}
        if name in above:
            return {"recursive": len(above) - above.index(name)}
        target = document["components"]["schemas"][name.rpartition("/")[2]]
        beside = {key: item for key, item in part.items() if key != "$ref"}
        return fill({**target, **beside}, (*above, name))

    paths = in_one_form(document["paths"])
    components = in_one_form(document["components"]["schemas"])
    document = {**document, "components": {**document["components"], "schemas": components}}
    return collapse(fill({**paths, "security": document["components"]["securitySchemes"]}))


def in_one_form(part: Any) -> Any:
    """Write what JSON Schema can say in two ways in one of them."""
    if isinstance(part, list):
        return [in_one_form(item) for item in part]
    if not isinstance(part, dict):
        return part
    part = {key: in_one_form(item) for key, item in part.items()}
    if part.get("additionalProperties") is True:
        part["additionalProperties"] = {}
    if isinstance(options := part.pop("oneOf", None), list):
        part["anyOf"] = options
    if "const" in part:
        part["enum"] = [part.pop("const")]
    return part


def collapse(part: Any) -> Any:
    """Join options that differ in type or values only: null beside a type, blank beside values."""
    if isinstance(part, list):
        return [collapse(item) for item in part]
    if not isinstance(part, dict):
        return part
    part = {key: collapse(item) for key, item in part.items()}
    for item in part.pop("allOf", {}).values():
        part = {**item, **part}
    options = part.pop("anyOf", None)
    if options is not None:
        options = [options[n] for n in options] if isinstance(options, dict) else options
        part |= join_options(options)
    if isinstance(part.get("type"), list):
        part["type"] = sorted(part["type"])
    if isinstance(part.get("enum"), list):
        part["enum"] = sorted((value for value in part["enum"] if value is not None), key=str)
    return part


def join_options(options: list[Any]) -> dict[str, Any]:
    """Return options as one schema; values of enums and types are united."""
    joined: dict[str, Any] = {}
    types: set[str] = set()
    values: list[Any] = []
    for option in options:
        rest = dict(option)
        kind = rest.pop("type", [])
        types |= {kind} if isinstance(kind, str) else set(kind)
        if "enum" in rest:
            values += rest.pop("enum")
            types |= {"null"} if None in option["enum"] or not option["enum"] else {"string"}
        joined |= rest
    if types:
        joined["type"] = sorted(types) if len(types) > 1 else next(iter(types))
    return {**joined, "enum": values} if values else joined


def differences(before: Any, after: Any, pointer: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield JSON pointers with what stood there and what stands there now."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            deeper = f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"
            pair = before.get(key, NOTHING), after.get(key, NOTHING)
            yield from differences(*pair, deeper)
    elif before != after:
        yield pointer, show(before), show(after)


def show(part: Any) -> str:
    return "nothing" if part is NOTHING else json.dumps(part, sort_keys=True)[:SHOWN]


def describe(changes: Iterator[tuple[str, str, str]]) -> list[str]:
    """Return a line for each change; what a component changes in many places is told once."""
    places = defaultdict(list)
    for pointer, before, after in changes:
        places[(*pointer.split("/")[-TAIL:], before, after)].append(pointer)
    return [
        f"{found[0]}: {before} -> {after}" + (f" (and {len(found) - 1} more)" if found[1:] else "")
        for (*_, before, after), found in places.items()
    ]
