"""Reading a JSON Schema (draft 2020-12) that somebody posted, once, before it is kept.

What would make checking unbounded or would be passed over in silence is refused with its
place: remote references, look-around in patterns, keywords of other drafts.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote

from diagnostics.ingest.schemas.applicators import APPLICATORS, never, refer
from diagnostics.ingest.schemas.assertions import ASSERTIONS, BadArgumentError
from diagnostics.ingest.schemas.checking import Check, Rule, SchemaFault, SchemaNode, ValuePlace
from failsoft.json_values import clean_json

MAX_BYTES = 64 * 1024
MAX_NODES = 10_000
MAX_DEPTH = 32
MAX_IGNORED = 20
DIALECT = re.compile(r"https?://json-schema\.org/draft/2020-12/schema#?")
# Where a keyword holds one schema, a list of schemas, or an object of schemas.
ONE = frozenset(
    {"additionalProperties", "propertyNames", "items", "contains"} | {"not", "if", "then", "else"}
)
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
# Of those, the ones whose schemas look at the same value.
IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
NEIGHBOURS = frozenset({"minContains", "maxContains"})
ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly"}
    | {"writeOnly", "$comment", "$schema", "$id", "$vocabulary"}
)
# Refused rather than passed over: each changes what a value must be.
REFUSED: Mapping[str, str] = {
    "additionalItems": "use prefixItems and items",
    "dependencies": "use dependentRequired or dependentSchemas",
    "nullable": 'use "type": ["...", "null"]',
    "unevaluatedProperties": "use additionalProperties",
    "unevaluatedItems": "use items",
    "$anchor": "refer to places by pointer: #/$defs/name",
    "$dynamicAnchor": "refer to places by pointer: #/$defs/name",
    "$dynamicRef": "use $ref with a pointer: #/$defs/name",
    "$recursiveRef": "use $ref with a pointer: #",
    "$recursiveAnchor": "use $ref with a pointer: #",
}


class SchemaFaultError(ValueError):
    """A schema is refused: the pointer to the place, a code, and what is expected there."""

    def __init__(self, path: str, code: str, message: str) -> None:
        """Place the fault."""
        super().__init__(message)
        self.path = path
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A schema that was read; `ignored` are pointers to keywords that check nothing."""

    nodes: Mapping[str, SchemaNode]
    title: str | None
    ignored: tuple[str, ...]


def read_schema(document: Any) -> CompiledSchema:  # noqa: ANN401 - any JSON
    """Read a schema, or raise SchemaFaultError with the first thing that is wrong.

    At most 64 KiB, 10,000 values, 32 levels; references only inside the document.
    """
    _check_bounds(document)
    reader = _Reader()
    reader.read(document, "")
    reader.check_references()
    title = document.get("title") if isinstance(document, dict) else None
    named = title.strip()[:200] if isinstance(title, str) else ""
    return CompiledSchema(reader.nodes, named or None, tuple(reader.ignored[:MAX_IGNORED]))


def _check_bounds(document: Any) -> None:  # noqa: ANN401 - any JSON
    storable, fault = clean_json(document, MAX_NODES, MAX_DEPTH)
    if fault is not None:
        raise SchemaFaultError(fault.path, fault.code, fault.message)
    if storable != document:
        raise SchemaFaultError("", "text", "texts without NUL and half characters")
    if len(json.dumps(document, ensure_ascii=False).encode()) > MAX_BYTES:
        raise SchemaFaultError("", "too_large", f"at most {MAX_BYTES} bytes")
    if isinstance(document, dict):
        dialect = document.get("$schema")
        if dialect is not None and not (isinstance(dialect, str) and DIALECT.fullmatch(dialect)):
            raise SchemaFaultError("/$schema", "dialect", "expected draft 2020-12")


class _Reader:
    def __init__(self) -> None:
        self.nodes: dict[str, SchemaNode] = {}
        self.ignored: list[str] = []
        self._references: list[tuple[str, str]] = []
        # From a schema to those that look at the same value.
        self._beside: dict[str, list[str]] = {}

    def read(self, schema: Any, pointer: str) -> None:  # noqa: ANN401 - any JSON
        if isinstance(schema, bool):
            self.nodes[pointer] = SchemaNode(rules=[] if schema else [never])
            return
        if not isinstance(schema, dict):
            raise SchemaFaultError(pointer, "schema", "expected an object or a boolean")
        self._read_below(schema, pointer)
        self.nodes[pointer] = SchemaNode()
        for keyword, argument in schema.items():
            self._read_keyword(keyword, argument, schema, pointer)

    def check_references(self) -> None:
        for at, target in self._references:
            if target not in self.nodes:
                raise SchemaFaultError(at, "reference", "there is no schema at this place")
        for at, _ in self._references:
            if self._comes_back(at.rpartition("/")[0]):
                message = "refers to itself without going into the value"
                raise SchemaFaultError(at, "reference", message)

    def _comes_back(self, start: str) -> bool:
        seen, left = set[str](), list(self._beside.get(start, ()))
        while left:
            here = left.pop()
            if here == start:
                return True
            if here not in seen:
                seen.add(here)
                left += self._beside.get(here, ())
        return False

    def _read_below(self, schema: dict[str, Any], pointer: str) -> None:
        for keyword, argument in schema.items():
            at = join(pointer, keyword)
            if keyword in ONE:
                self._read_one(argument, pointer, at, keyword in IN_PLACE)
            elif keyword in LISTS:
                if not isinstance(argument, list) or not argument:
                    raise SchemaFaultError(at, "argument", "expected a list of schemas")
                for index, item in enumerate(argument):
                    inner = join(at, index)
                    self._read_one(item, pointer, inner, keyword in IN_PLACE)
            elif keyword in MAPS:
                if not isinstance(argument, dict):
                    raise SchemaFaultError(at, "argument", "expected named schemas")
                for name, item in argument.items():
                    inner = join(at, name)
                    self._read_one(item, pointer, inner, keyword in IN_PLACE)

    def _read_one(self, schema: object, pointer: str, below: str, in_place: bool) -> None:
        if in_place:
            self._beside.setdefault(pointer, []).append(below)
        self.read(schema, below)

    def _read_keyword(
        self,
        keyword: str,
        argument: Any,  # noqa: ANN401 - any JSON
        schema: dict[str, Any],
        pointer: str,
    ) -> None:
        node, at = self.nodes[pointer], join(pointer, keyword)
        if keyword in REFUSED:
            raise SchemaFaultError(at, "unsupported", REFUSED[keyword])
        if keyword == "$id" and pointer:
            raise SchemaFaultError(at, "unsupported", "only the root may have an $id")
        try:
            if keyword in ASSERTIONS:
                rule = _assert(keyword, ASSERTIONS[keyword](argument))
                (node.first if keyword == "type" else node.rules).append(rule)
            elif keyword in APPLICATORS:
                node_at = partial(self._below, pointer)
                node.rules.append(APPLICATORS[keyword](argument, schema, node_at))
            elif keyword == "$ref":
                node.rules.append(refer(self._target(argument, at)))
            elif keyword not in ONE | MAPS | NEIGHBOURS | ANNOTATIONS:
                self.ignored.append(at)
        except BadArgumentError as error:
            raise SchemaFaultError(at, "argument", f"expected {error}") from error

    def _below(self, pointer: str, *segments: str | int) -> SchemaNode:
        return self.nodes[join(pointer, *segments)]

    def _target(self, argument: object, at: str) -> str:
        if not isinstance(argument, str) or not argument.startswith("#"):
            raise SchemaFaultError(at, "reference", "only places in this document: #/...")
        target = unquote(argument[1:])
        self._references.append((at, target))
        self._beside.setdefault(at.rpartition("/")[0], []).append(target)
        return target


def _assert(keyword: str, assertion: Any) -> Rule:  # noqa: ANN401 - an Assertion
    code = re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", keyword)

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        if isinstance(value, list):
            check.spend(len(value))
        message = assertion(value)
        return [] if message is None else [SchemaFault(place, code, message)]

    return rule


def join(pointer: str, *segments: str | int) -> str:
    """Extend a JSON pointer."""
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in segments)
    return pointer + "".join(f"/{part}" for part in escaped)
